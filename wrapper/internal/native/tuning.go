// SPDX-License-Identifier: Apache-2.0

package native

// #include "shim.h"
import "C"

import (
	"strconv"
	"strings"
	"unsafe"
)

// TunerOptions are sparsek_tuner_options.
type TunerOptions struct {
	Seconds float64
	All     bool
}

// TunerCreate calls tuner_create.
func (l *Library) TunerCreate(matrix unsafe.Pointer, plan PlanOptions, tuning TunerOptions) (unsafe.Pointer, error) {
	raw := plan.c()
	options := C.sparsek_tuner_options{
		abi_size: C.sizeof_sparsek_tuner_options, seconds: C.double(tuning.Seconds), all: toFlag(tuning.All),
	}
	var out *C.sparsek_tuner
	err := end("create tuner", C.shim_tuner_create(l.api, (*C.sparsek_matrix)(matrix), &raw, &options, &out))
	return unsafe.Pointer(out), err
}

// TunerDestroy calls tuner_destroy.
func (l *Library) TunerDestroy(tuner unsafe.Pointer) {
	C.shim_tuner_destroy(l.api, (*C.sparsek_tuner)(tuner))
}

// TunerStep calls tuner_step. It gives the index of the candidate that was measured, -1 where nothing was left to do.
func (l *Library) TunerStep(tuner unsafe.Pointer) (int, error) {
	var out C.int32_t
	err := end("tune", C.shim_tuner_step(l.api, (*C.sparsek_tuner)(tuner), &out))
	return int(out), err
}

// TunerFinish calls tuner_finish. It gives a plan.
func (l *Library) TunerFinish(tuner unsafe.Pointer) (unsafe.Pointer, error) {
	var out *C.sparsek_plan
	err := end("finish tuning", C.shim_tuner_finish(l.api, (*C.sparsek_tuner)(tuner), &out))
	return unsafe.Pointer(out), err
}

// Candidate is sparsek_candidate_info. Times are in seconds.
type Candidate struct {
	Kernel, Note             string
	Serves, Best             bool
	Runs                     int
	Predicted, Median, Setup float64
	Spread                   float64
}

// TunerCandidates calls tuner_candidate for each candidate.
func (l *Library) TunerCandidates(tuner unsafe.Pointer) ([]Candidate, error) {
	list := make([]Candidate, C.shim_tuner_candidate_count(l.api, (*C.sparsek_tuner)(tuner)))
	for i := range list {
		var out C.sparsek_candidate_info
		if err := end("describe candidate", C.shim_tuner_candidate(l.api, (*C.sparsek_tuner)(tuner), C.int32_t(i), &out)); err != nil {
			return nil, err
		}
		list[i] = Candidate{
			Kernel: C.GoString(out.kernel), Note: C.GoString(out.note),
			Serves: out.serves != 0, Best: out.best != 0, Runs: int(out.runs),
			Predicted: float64(out.predicted_seconds), Median: float64(out.seconds), Setup: float64(out.setup_seconds),
			Spread: float64(out.spread),
		}
	}
	return list, nil
}

// optionalPath is null for an empty path. It is to be freed.
func optionalPath(op, path string) (*C.char, error) {
	if strings.ContainsRune(path, 0) {
		return nil, NewError(op, BadArgument, "path "+strconv.Quote(path)+": a path has no zero byte")
	}
	if path == "" {
		return nil, nil
	}
	return C.CString(path), nil
}

// CacheOpen calls tuning_cache_open: of a file, without a path the user's, or what is shipped with the library.
func (l *Library) CacheOpen(path string, shipped bool) (unsafe.Pointer, error) {
	const op = "open tuning cache"
	name, err := optionalPath(op, path)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(name))
	source := C.int32_t(C.SPARSEK_TUNING_FILE)
	if shipped {
		source = C.SPARSEK_TUNING_SHIPPED
	}
	var out *C.sparsek_tuning_cache
	err = end(op, C.shim_tuning_cache_open(l.api, name, source, &out))
	return unsafe.Pointer(out), err
}

// CacheClose calls tuning_cache_close.
func (l *Library) CacheClose(cache unsafe.Pointer) {
	C.shim_tuning_cache_close(l.api, (*C.sparsek_tuning_cache)(cache))
}

// Cache is sparsek_tuning_cache_info.
type Cache struct {
	Path, Fault, Build string
	State              int32
	Entries            []CacheEntry
}

// CacheEntry is sparsek_tuning_entry. Measured is in seconds since 1970.
type CacheEntry struct {
	ID, Device, Build, Op                 string
	M, N, K, BlockM, BlockK               int
	Measured                              int64
	SMs                                   int
	DType, DTypeB                         int32
	Output, Bias, Activation              int32
	DensityClass, SpreadClass, UnionClass int
	KeptValues                            bool
	Candidates                            []CacheCandidate
}

// CacheCandidate is sparsek_tuning_candidate. Times are in seconds.
type CacheCandidate struct {
	Kernel                string
	Median, Spread, Setup float64
}

// CacheRead calls tuning_cache_info, tuning_cache_entry and tuning_cache_candidate for all that is there.
func (l *Library) CacheRead(cache unsafe.Pointer) (Cache, error) {
	const op = "read tuning cache"
	pointer := (*C.sparsek_tuning_cache)(cache)
	var info C.sparsek_tuning_cache_info
	if err := end(op, C.shim_tuning_cache_info(l.api, pointer, &info)); err != nil {
		return Cache{}, err
	}
	out := Cache{C.GoString(info.path), C.GoString(info.fault), C.GoString(info.build), int32(info.state),
		make([]CacheEntry, info.entries)}
	for i := range out.Entries {
		var e C.sparsek_tuning_entry
		if err := end(op, C.shim_tuning_cache_entry(l.api, pointer, C.int64_t(i), &e)); err != nil {
			return Cache{}, err
		}
		candidates := make([]CacheCandidate, e.candidates)
		for j := range candidates {
			var k C.sparsek_tuning_candidate
			if err := end(op, C.shim_tuning_cache_candidate(l.api, pointer, C.int64_t(i), C.int32_t(j), &k)); err != nil {
				return Cache{}, err
			}
			candidates[j] = CacheCandidate{C.GoString(k.kernel), float64(k.seconds), float64(k.spread), float64(k.setup_seconds)}
		}
		if e.dtype_b == 0 { // a library from before B could have a type of its own
			e.dtype_b = e.dtype
		}
		out.Entries[i] = CacheEntry{
			ID: C.GoString(e.id), Device: C.GoString(e.device), Build: C.GoString(e.build), Op: C.GoString(e.op),
			M: int(e.m), N: int(e.n), K: int(e.k), BlockM: int(e.block_m), BlockK: int(e.block_k),
			Measured: int64(e.measured), SMs: int(e.sm_count),
			DType: int32(e.dtype), DTypeB: int32(e.dtype_b), Output: int32(e.dtype_c), Bias: int32(e.bias), Activation: int32(e.activation),
			DensityClass: int(e.density_class), SpreadClass: int(e.spread_class), UnionClass: int(e.union_class), KeptValues: e.kept_values != 0,
			Candidates: candidates,
		}
	}
	return out, nil
}

// CacheChange is sparsek_tuning_change.
type CacheChange struct {
	Entries int
	Warning string
}

// CacheMerge calls tuning_cache_merge.
func (l *Library) CacheMerge(into string, from unsafe.Pointer) (CacheChange, error) {
	const op = "merge into tuning cache"
	name, err := optionalPath(op, into)
	if err != nil {
		return CacheChange{}, err
	}
	defer C.free(unsafe.Pointer(name))
	var out C.sparsek_tuning_change
	err = end(op, C.shim_tuning_cache_merge(l.api, name, (*C.sparsek_tuning_cache)(from), &out))
	return cacheChange(&out), err
}

// CacheClear calls tuning_cache_clear.
func (l *Library) CacheClear(path string) (CacheChange, error) {
	const op = "clear tuning cache"
	name, err := optionalPath(op, path)
	if err != nil {
		return CacheChange{}, err
	}
	defer C.free(unsafe.Pointer(name))
	var out C.sparsek_tuning_change
	err = end(op, C.shim_tuning_cache_clear(l.api, name, &out))
	return cacheChange(&out), err
}

func cacheChange(c *C.sparsek_tuning_change) CacheChange {
	return CacheChange{int(c.entries), C.GoString(&c.warning[0])}
}

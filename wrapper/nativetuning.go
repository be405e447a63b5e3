// SPDX-License-Identifier: Apache-2.0

package sparsek

/*
#include "shim.h"
*/
import "C"

import (
	"strings"
	"time"
	"unsafe"
)

// Every call about tuning caches is in this file, as those about products are in native.go.

// optionalPath is null for an empty path. It is to be freed.
func optionalPath(op, path string) (*C.char, error) {
	if strings.ContainsRune(path, 0) {
		return nil, fault(op, ErrBadArgument, "path %q: a path has no zero byte", path)
	}
	if path == "" {
		return nil, nil
	}
	return C.CString(path), nil
}

func (l *Library) tuningOpen(path string, shipped bool) (unsafe.Pointer, error) {
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

// tuningRead fills in what is public of c.
func (l *Library) tuningRead(cache unsafe.Pointer, c *TuningCache) error {
	const op = "read tuning cache"
	pointer := (*C.sparsek_tuning_cache)(cache)
	var info C.sparsek_tuning_cache_info
	if err := end(op, C.shim_tuning_cache_info(l.api, pointer, &info)); err != nil {
		return err
	}
	c.Path, c.Fault, c.Build = C.GoString(info.path), C.GoString(info.fault), C.GoString(info.build)
	c.State = TuningState(info.state)
	c.Entries = make([]TuningEntry, info.entries)
	for i := range c.Entries {
		var e C.sparsek_tuning_entry
		if err := end(op, C.shim_tuning_cache_entry(l.api, pointer, C.int64_t(i), &e)); err != nil {
			return err
		}
		candidates := make([]TuningCandidate, e.candidates)
		for j := range candidates {
			var k C.sparsek_tuning_candidate
			if err := end(op, C.shim_tuning_cache_candidate(l.api, pointer, C.int64_t(i), C.int32_t(j), &k)); err != nil {
				return err
			}
			candidates[j] = TuningCandidate{C.GoString(k.kernel), float64(k.seconds), float64(k.spread), float64(k.setup_seconds)}
		}
		c.Entries[i] = TuningEntry{
			ID: C.GoString(e.id), Device: C.GoString(e.device), SMs: int(e.sm_count),
			Build: C.GoString(e.build), Op: C.GoString(e.op),
			M: int64(e.m), N: int64(e.n), K: int64(e.k), BlockM: int64(e.block_m), BlockK: int64(e.block_k),
			DType: DType(e.dtype), Output: DType(e.dtype_c), Bias: Bias(e.bias), Activation: Activation(e.activation),
			DensityClass: int(e.density_class), SpreadClass: int(e.spread_class), UnionClass: int(e.union_class),
			Measured: time.Unix(int64(e.measured), 0).UTC(), Candidates: candidates,
		}
	}
	return nil
}

func (l *Library) tuningClose(cache unsafe.Pointer) {
	C.shim_tuning_cache_close(l.api, (*C.sparsek_tuning_cache)(cache))
}

func (l *Library) tuningMerge(into string, from unsafe.Pointer) (TuningChange, error) {
	const op = "merge into tuning cache"
	name, err := optionalPath(op, into)
	if err != nil {
		return TuningChange{}, err
	}
	defer C.free(unsafe.Pointer(name))
	var out C.sparsek_tuning_change
	err = end(op, C.shim_tuning_cache_merge(l.api, name, (*C.sparsek_tuning_cache)(from), &out))
	return tuningChange(&out), err
}

func (l *Library) tuningClear(path string) (TuningChange, error) {
	const op = "clear tuning cache"
	name, err := optionalPath(op, path)
	if err != nil {
		return TuningChange{}, err
	}
	defer C.free(unsafe.Pointer(name))
	var out C.sparsek_tuning_change
	err = end(op, C.shim_tuning_cache_clear(l.api, name, &out))
	return tuningChange(&out), err
}

func tuningChange(c *C.sparsek_tuning_change) TuningChange {
	return TuningChange{int64(c.entries), C.GoString(&c.warning[0])}
}

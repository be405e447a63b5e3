// SPDX-License-Identifier: Apache-2.0

package sparsek

/*
#cgo noescape shim_multiply
#cgo nocallback shim_multiply
#include "shim.h"
*/
import "C"

import (
	"math"
	"strings"
	"unsafe"
)

// Every call into the library is in this file. Addresses go in and out as unsafe.Pointer.

const (
	memoryHost   int32 = C.SPARSEK_HOST
	memoryDevice int32 = C.SPARSEK_DEVICE
)

func indexTypeOf[I Index]() int32 {
	var zero I
	if _, ok := any(zero).(int32); ok {
		return C.SPARSEK_INT32
	}
	return C.SPARSEK_INT64
}

// end makes an error of a failed call.
func end(op string, result C.shim_result) error {
	if result.status == C.SPARSEK_OK {
		return nil
	}
	defer C.free(unsafe.Pointer(result.message))
	return &Error{Op: op, Status: Status(result.status), Msg: C.GoString(result.message)}
}

// toInt32 narrows an int for the ABI; what does not fit becomes -1, which the library refuses wherever it is used.
func toInt32(x int) C.int32_t {
	if x < math.MinInt32 || x > math.MaxInt32 {
		return -1
	}
	return C.int32_t(x)
}

func toFlag(set bool) C.int32_t {
	if set {
		return 1
	}
	return 0
}

func (l *Library) statusName(s Status) string {
	return C.GoString(C.shim_status_name(l.api, C.int32_t(s)))
}

func (l *Library) contextCreate(opts EngineOptions) (unsafe.Pointer, error) {
	var out *C.sparsek_context
	err := end("create context", C.shim_context_create(l.api, C.int32_t(opts.Backend), toInt32(opts.Device), toInt32(opts.Threads), &out))
	return unsafe.Pointer(out), err
}

func (l *Library) contextInfo(context unsafe.Pointer) (EngineInfo, error) {
	var out C.sparsek_context_info
	if err := end("describe context", C.shim_context_info(l.api, (*C.sparsek_context)(context), &out)); err != nil {
		return EngineInfo{}, err
	}
	return EngineInfo{
		Backend: Backend(out.backend),
		Device:  int(out.device),
		Threads: int(out.threads),
		Reason:  C.GoString(out.reason),
		ISA:     C.GoString(out.isa),
	}, nil
}

func (l *Library) contextDestroy(context unsafe.Pointer) {
	C.shim_context_destroy(l.api, (*C.sparsek_context)(context))
}

// rawBSR is a BSR matrix without its types.
type rawBSR struct {
	rows, cols, blockM, blockK, nnzb int
	dtype                            DType
	indexType, memory                int32
	validateDevice                   int32
	rowPtr, colIdx, values           unsafe.Pointer
}

func (l *Library) matrixCreate(context unsafe.Pointer, a rawBSR) (unsafe.Pointer, error) {
	var out *C.sparsek_matrix
	err := end("create matrix", C.shim_matrix_create(l.api, (*C.sparsek_context)(context),
		C.int64_t(a.rows), C.int64_t(a.cols), C.int64_t(a.blockM), C.int64_t(a.blockK), C.int64_t(a.nnzb),
		C.int32_t(a.dtype), C.int32_t(a.indexType), C.int32_t(a.memory), C.int32_t(a.validateDevice),
		a.rowPtr, a.colIdx, a.values, &out))
	return unsafe.Pointer(out), err
}

func (l *Library) matrixSetValues(matrix, values unsafe.Pointer, memory int32, stream unsafe.Pointer) error {
	return end("set values", C.shim_matrix_set_values(l.api, (*C.sparsek_matrix)(matrix), values, C.int32_t(memory), C.sparsek_stream(stream)))
}

func (l *Library) matrixDestroy(matrix unsafe.Pointer) {
	C.shim_matrix_destroy(l.api, (*C.sparsek_matrix)(matrix))
}

// rawPlanOptions are C's form of opts, all but the kernel.
func rawPlanOptions(opts PlanOptions) C.sparsek_plan_options {
	return C.sparsek_plan_options{
		abi_size: C.sizeof_sparsek_plan_options,
		n:        C.int64_t(opts.N), ldb: C.int64_t(opts.LDB), ldc: C.int64_t(opts.LDC),
		alignment: toInt32(opts.Alignment),
		dtype_c:   C.int32_t(opts.Output), bias: C.int32_t(opts.Bias), activation: C.int32_t(opts.Activation),
		allow_dense: toFlag(opts.AllowDense),
	}
}

func (l *Library) planCreate(matrix unsafe.Pointer, opts PlanOptions) (unsafe.Pointer, error) {
	const op = "create plan"
	var kernel *C.char
	if opts.Kernel != "" {
		if strings.ContainsRune(opts.Kernel, 0) {
			return nil, fault(op, ErrNoSuchKernel, "kernel %q: a name has no zero byte", opts.Kernel)
		}
		kernel = C.CString(opts.Kernel)
		defer C.free(unsafe.Pointer(kernel))
	}
	raw := rawPlanOptions(opts)
	var out *C.sparsek_plan
	err := end(op, C.shim_plan_create(l.api, (*C.sparsek_matrix)(matrix), &raw, kernel, &out))
	return unsafe.Pointer(out), err
}

func (l *Library) tunerCreate(matrix unsafe.Pointer, opts PlanOptions, tuning TunerOptions) (unsafe.Pointer, error) {
	raw := rawPlanOptions(opts)
	options := C.sparsek_tuner_options{
		abi_size: C.sizeof_sparsek_tuner_options, seconds: C.double(tuning.Budget.Seconds()), all: toFlag(tuning.All),
	}
	var out *C.sparsek_tuner
	err := end("create tuner", C.shim_tuner_create(l.api, (*C.sparsek_matrix)(matrix), &raw, &options, &out))
	return unsafe.Pointer(out), err
}

func (l *Library) tunerDestroy(tuner unsafe.Pointer) {
	C.shim_tuner_destroy(l.api, (*C.sparsek_tuner)(tuner))
}

// tunerStep gives the place of the candidate that was measured, -1 where there was nothing left to do.
func (l *Library) tunerStep(tuner unsafe.Pointer) (int, error) {
	var out C.int32_t
	err := end("tune", C.shim_tuner_step(l.api, (*C.sparsek_tuner)(tuner), &out))
	return int(out), err
}

func (l *Library) tunerCandidates(tuner unsafe.Pointer) ([]Candidate, error) {
	list := make([]Candidate, C.shim_tuner_candidate_count(l.api, (*C.sparsek_tuner)(tuner)))
	for i := range list {
		var out C.sparsek_candidate_info
		if err := end("describe candidate", C.shim_tuner_candidate(l.api, (*C.sparsek_tuner)(tuner), C.int32_t(i), &out)); err != nil {
			return nil, err
		}
		list[i] = Candidate{
			Kernel: C.GoString(out.kernel), Note: C.GoString(out.note),
			Serves: out.serves != 0, Best: out.best != 0, Runs: int(out.runs),
			Predicted: duration(float64(out.predicted_seconds)), Median: duration(float64(out.seconds)),
			Spread: float64(out.spread), Setup: duration(float64(out.setup_seconds)),
		}
	}
	return list, nil
}

func (l *Library) tunerFinish(tuner unsafe.Pointer) (unsafe.Pointer, error) {
	var out *C.sparsek_plan
	err := end("finish tuning", C.shim_tuner_finish(l.api, (*C.sparsek_tuner)(tuner), &out))
	return unsafe.Pointer(out), err
}

func (l *Library) planInfo(plan unsafe.Pointer) (PlanInfo, error) {
	var out C.sparsek_plan_info
	if err := end("describe plan", C.shim_plan_info(l.api, (*C.sparsek_plan)(plan), &out)); err != nil {
		return PlanInfo{}, err
	}
	return PlanInfo{
		Kernel: C.GoString(out.kernel),
		Reason: C.GoString(out.reason),
		TileM:  int(out.tile_m), TileN: int(out.tile_n), TileK: int(out.tile_k),
		Stages:         int(out.stages),
		Tiles:          int64(out.tiles),
		Entries:        int64(out.entries),
		WorkspaceBytes: int64(out.workspace_bytes),
		UnitRoundoff:   float64(out.unit_roundoff),
		ChosenBy:       ChosenBy(out.chosen_by),
		Predicted:      duration(float64(out.predicted_seconds)),
		Measured:       duration(float64(out.measured_seconds)),
		Warning:        C.GoString(out.warning),
	}, nil
}

// planRecomputed waits for the device where the plan was in use.
func (l *Library) planRecomputed(plan unsafe.Pointer) (int64, error) {
	var out C.sparsek_plan_info
	err := end("describe plan", C.shim_plan_info(l.api, (*C.sparsek_plan)(plan), &out))
	return int64(out.recomputed), err
}

func (l *Library) planDestroy(plan unsafe.Pointer) {
	C.shim_plan_destroy(l.api, (*C.sparsek_plan)(plan))
}

// rawOperand is B or C without its type.
type rawOperand struct {
	data   unsafe.Pointer
	stride int
}

// multiply is given a nil bias where the plan has none.
func (l *Library) multiply(plan unsafe.Pointer, alpha, beta float32, b, c rawOperand, bias, stream unsafe.Pointer) error {
	return end("multiply", C.shim_multiply(l.api, (*C.sparsek_plan)(plan), C.float(alpha), C.float(beta),
		b.data, C.int64_t(b.stride), c.data, C.int64_t(c.stride), bias, C.sparsek_stream(stream)))
}

// multiplyTime gives seconds. b and c are the addresses of operands, as many of the one as of the other and at least
// one, kept alive and pinned by the caller.
func (l *Library) multiplyTime(plan unsafe.Pointer, alpha, beta float32, b []uintptr, ldb int, c []uintptr, ldc int,
	bias, stream unsafe.Pointer, warmup, repeats int) ([]float64, error) {
	const op = "time multiply"
	if repeats < 1 || repeats > math.MaxInt32 {
		return nil, fault(op, ErrBadSize, "%d repeats are not in [1, %d]", repeats, math.MaxInt32)
	}
	seconds := make([]float64, repeats)
	err := end(op, C.shim_multiply_time(l.api, (*C.sparsek_plan)(plan), C.float(alpha), C.float(beta),
		(*C.uintptr_t)(unsafe.Pointer(&b[0])), C.int64_t(ldb), (*C.uintptr_t)(unsafe.Pointer(&c[0])), C.int64_t(ldc),
		toInt32(len(b)), bias, C.sparsek_stream(stream), toInt32(warmup), toInt32(repeats),
		(*C.double)(unsafe.Pointer(&seconds[0]))))
	return seconds, err
}

// graphTime gives seconds. plans, b, c and bias are as many addresses each, and at least one, kept alive by the caller;
// the strides are those that were planned for, and bias is 0 for a plan without one.
func (l *Library) graphTime(plans []uintptr, alpha, beta float32, b, c, bias []uintptr, warmup, repeats int) ([]float64, error) {
	seconds := make([]float64, repeats)
	err := end(opTimeGraph, C.shim_graph_time(l.api, (*C.uintptr_t)(unsafe.Pointer(&plans[0])), C.float(alpha), C.float(beta),
		(*C.uintptr_t)(unsafe.Pointer(&b[0])), (*C.uintptr_t)(unsafe.Pointer(&c[0])), (*C.uintptr_t)(unsafe.Pointer(&bias[0])),
		toInt32(len(plans)), toInt32(warmup), toInt32(repeats), (*C.double)(unsafe.Pointer(&seconds[0]))))
	return seconds, err
}

// denseTime gives seconds. a, b and c are the addresses of operands in device memory, as many of each and at least one,
// kept alive by the caller.
func (l *Library) denseTime(context unsafe.Pointer, m, n, k int, dtype DType, a, b, c []uintptr,
	stream unsafe.Pointer, warmup, repeats int) ([]float64, error) {
	const op = "time dense product"
	if repeats < 1 || repeats > math.MaxInt32 {
		return nil, fault(op, ErrBadSize, "%d repeats are not in [1, %d]", repeats, math.MaxInt32)
	}
	seconds := make([]float64, repeats)
	err := end(op, C.shim_dense_time(l.api, (*C.sparsek_context)(context), C.int64_t(m), C.int64_t(n), C.int64_t(k), C.int32_t(dtype),
		(*C.uintptr_t)(unsafe.Pointer(&a[0])), (*C.uintptr_t)(unsafe.Pointer(&b[0])), (*C.uintptr_t)(unsafe.Pointer(&c[0])),
		toInt32(len(a)), C.sparsek_stream(stream), toInt32(warmup), toInt32(repeats), (*C.double)(unsafe.Pointer(&seconds[0]))))
	return seconds, err
}

func (l *Library) bufferCreate(context unsafe.Pointer, bytes int) (unsafe.Pointer, error) {
	var out unsafe.Pointer
	err := end("create buffer", C.shim_buffer_create(l.api, (*C.sparsek_context)(context), C.size_t(bytes), &out))
	return out, err
}

func (l *Library) bufferDestroy(context, buffer unsafe.Pointer) error {
	return end("destroy buffer", C.shim_buffer_destroy(l.api, (*C.sparsek_context)(context), buffer))
}

func (l *Library) bufferWrite(context, buffer, host unsafe.Pointer, bytes int, stream unsafe.Pointer) error {
	return end("write buffer", C.shim_buffer_write(l.api, (*C.sparsek_context)(context), buffer, host, C.size_t(bytes), C.sparsek_stream(stream)))
}

func (l *Library) bufferRead(context, host, buffer unsafe.Pointer, bytes int, stream unsafe.Pointer) error {
	return end("read buffer", C.shim_buffer_read(l.api, (*C.sparsek_context)(context), host, buffer, C.size_t(bytes), C.sparsek_stream(stream)))
}

func (l *Library) bufferFill(context, buffer unsafe.Pointer, value byte, bytes int, stream unsafe.Pointer) error {
	return end("fill buffer", C.shim_buffer_fill(l.api, (*C.sparsek_context)(context), buffer, C.int32_t(value), C.size_t(bytes), C.sparsek_stream(stream)))
}

func (l *Library) streamCreate(context unsafe.Pointer) (unsafe.Pointer, error) {
	var out C.sparsek_stream
	err := end("create stream", C.shim_stream_create(l.api, (*C.sparsek_context)(context), &out))
	return unsafe.Pointer(out), err
}

func (l *Library) streamDestroy(context, stream unsafe.Pointer) error {
	return end("destroy stream", C.shim_stream_destroy(l.api, (*C.sparsek_context)(context), C.sparsek_stream(stream)))
}

func (l *Library) streamSynchronize(context, stream unsafe.Pointer) error {
	return end("wait for stream", C.shim_stream_synchronize(l.api, (*C.sparsek_context)(context), C.sparsek_stream(stream)))
}

func (l *Library) streamDone(context, stream unsafe.Pointer) (bool, error) {
	var done C.int32_t
	err := end("poll stream", C.shim_stream_query(l.api, (*C.sparsek_context)(context), C.sparsek_stream(stream), &done))
	return done != 0, err
}

// rawCheck is what a check compares, without its types; a's arrays are host arrays.
type rawCheck struct {
	a            rawBSR
	n            int
	b, c         rawOperand
	c0           unsafe.Pointer // with c's stride
	alpha, beta  float32
	unitRoundoff float64
	threads      int
	output       DType // of c0, c and bias
	biasKind     Bias
	bias         unsafe.Pointer
	activation   Activation
}

func (l *Library) check(x rawCheck) (Report, error) {
	var out C.sparsek_check_report
	a := x.a
	err := end("check", C.shim_check(l.api,
		C.int64_t(a.rows), C.int64_t(a.cols), C.int64_t(a.blockM), C.int64_t(a.blockK), C.int64_t(a.nnzb),
		C.int32_t(a.dtype), C.int32_t(a.indexType), a.rowPtr, a.colIdx, a.values,
		C.int64_t(x.n), x.b.data, C.int64_t(x.b.stride), x.c0, x.c.data, C.int64_t(x.c.stride),
		C.float(x.alpha), C.float(x.beta), C.double(x.unitRoundoff), toInt32(x.threads),
		C.int32_t(x.output), C.int32_t(x.biasKind), C.int32_t(x.activation), x.bias, &out))
	return Report{
		Elements: int64(out.elements),
		Failures: int64(out.failures),
		MaxAbsC:  float64(out.max_abs_c),
		MaxError: float64(out.max_error),
		MaxRatio: float64(out.max_ratio),
		WorstRow: int64(out.worst_row), WorstCol: int64(out.worst_col),
		WorstC: float64(out.worst_c), WorstRef: float64(out.worst_ref), WorstBound: float64(out.worst_bound),
		FirstRow: int64(out.first_row), FirstCol: int64(out.first_col),
	}, err
}

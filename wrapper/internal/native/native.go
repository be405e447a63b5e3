// SPDX-License-Identifier: Apache-2.0

// Package native calls libsparsek: every function of its table once, with Go's types for C's, and nothing else. What
// its handles refer to, and for how long, is for package sparsek to know.
//
// Addresses of objects and of memory are unsafe.Pointers. Streams are uintptrs: some values of a cudaStream_t are no
// addresses (1 is the default stream of the process, 2 that of a thread), and Go's stacks must not hold such pointers.
package native

/*
#cgo noescape shim_multiply
#cgo nocallback shim_multiply
#include "shim.h"
*/
import "C"

import (
	"math"
	"runtime"
	"strings"
	"unsafe"
)

// NewError makes the error of a failed call: package sparsek sets it, whose type it is. op is what was asked for.
var NewError func(op string, status int32, message string) error

// Library is a loaded libsparsek. It may be used from several goroutines at once.
type Library struct {
	api  *C.sparsek_api
	path string
}

// Path is the file the library was loaded from.
func (l *Library) Path() string { return l.path }

// The numbers of sparsek.h.
const (
	BadSize      int32 = C.SPARSEK_BAD_SIZE
	BadArgument  int32 = C.SPARSEK_BAD_ARGUMENT
	NoSuchKernel int32 = C.SPARSEK_NO_SUCH_KERNEL

	Host   int32 = C.SPARSEK_HOST
	Device int32 = C.SPARSEK_DEVICE

	Int32 int32 = C.SPARSEK_INT32
	Int64 int32 = C.SPARSEK_INT64
	Int16 int32 = C.SPARSEK_INT16
)

// end makes an error of a failed call.
func end(op string, result C.shim_result) error {
	if result.status == C.SPARSEK_OK {
		return nil
	}
	defer C.free(unsafe.Pointer(result.message))
	return NewError(op, int32(result.status), C.GoString(result.message))
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

// StatusName is the name of a status in sparsek.h.
func (l *Library) StatusName(status int32) string {
	return C.GoString(C.shim_status_name(l.api, C.int32_t(status)))
}

// BuildInfo is sparsek_build_info.
type BuildInfo struct{ Version, CUTLASS, CUDA, Compiler, Commit string }

// BuildInfo calls build_info.
func (l *Library) BuildInfo() (BuildInfo, error) {
	var out C.sparsek_build_info
	if err := end("describe build", C.shim_build_info(l.api, &out)); err != nil {
		return BuildInfo{}, err
	}
	return BuildInfo{
		Version:  C.GoString(out.version),
		CUTLASS:  C.GoString(out.cutlass),
		CUDA:     C.GoString(out.cuda),
		Compiler: C.GoString(out.compiler),
		Commit:   C.GoString(out.commit),
	}, nil
}

// Kernel is sparsek_kernel_info.
type Kernel struct {
	Name, Why           string
	Backend             int32
	DType, DTypeB       int32 // DTypeB is 0 where it is DType
	TileM, TileN, TileK int
	Stages              int
	BlockM              int
	BlockMMultiple      bool
	BlockKMultiple      int
	Baseline            bool
	Library             string
	ReadsAbsent         bool
}

// Kernels calls kernel_info for each kernel.
func (l *Library) Kernels() ([]Kernel, error) {
	kernels := make([]Kernel, C.shim_kernel_count(l.api))
	for i := range kernels {
		var out C.sparsek_kernel_info
		if err := end("describe kernel", C.shim_kernel_info(l.api, C.int32_t(i), &out)); err != nil {
			return nil, err
		}
		kernels[i] = Kernel{
			Name: C.GoString(out.name), Why: C.GoString(out.why),
			Backend: int32(out.backend), DType: int32(out.dtype), DTypeB: int32(out.dtype_b),
			TileM: int(out.tile_m), TileN: int(out.tile_n), TileK: int(out.tile_k),
			Stages:         int(out.stages),
			BlockM:         int(out.block_m),
			BlockMMultiple: out.block_m_multiple != 0,
			BlockKMultiple: int(out.block_k_multiple),
			Baseline:       out.baseline != 0,
			Library:        C.GoString(out.library),
			ReadsAbsent:    out.reads_absent != 0,
		}
	}
	return kernels, nil
}

// DeviceInfo is sparsek_device_info.
type DeviceInfo struct {
	Name                       string
	ComputeMajor, ComputeMinor int
	SMs                        int
	MemoryBytes, L2Bytes       int64
	DriverVersion              int
	ClockHz                    int64
	Usable                     bool
}

// Devices calls device_info for each device.
func (l *Library) Devices() ([]DeviceInfo, error) {
	devices := make([]DeviceInfo, C.shim_device_count(l.api))
	for i := range devices {
		var out C.sparsek_device_info
		if err := end("describe device", C.shim_device_info(l.api, C.int32_t(i), &out)); err != nil {
			return nil, err
		}
		devices[i] = DeviceInfo{
			Name:         C.GoString(&out.name[0]),
			ComputeMajor: int(out.compute_major), ComputeMinor: int(out.compute_minor),
			SMs:         int(out.sm_count),
			MemoryBytes: int64(out.memory_bytes), L2Bytes: int64(out.l2_bytes),
			DriverVersion: int(out.driver_version),
			ClockHz:       int64(out.clock_hz),
			Usable:        out.usable != 0,
		}
	}
	return devices, nil
}

// ContextOptions are sparsek_context_options.
type ContextOptions struct {
	Backend         int32
	Device, Threads int
}

// ContextCreate calls context_create.
func (l *Library) ContextCreate(options ContextOptions) (unsafe.Pointer, error) {
	raw := C.sparsek_context_options{abi_size: C.sizeof_sparsek_context_options,
		backend: C.int32_t(options.Backend), device: toInt32(options.Device), threads: toInt32(options.Threads)}
	var out *C.sparsek_context
	err := end("create engine", C.shim_context_create(l.api, &raw, &out))
	return unsafe.Pointer(out), err
}

// ContextInfo is sparsek_context_info.
type ContextInfo struct {
	Backend         int32
	Device, Threads int
	Reason, ISA     string
	GPUFault        bool
}

// ContextInfo calls context_info.
func (l *Library) ContextInfo(context unsafe.Pointer) (ContextInfo, error) {
	var out C.sparsek_context_info
	if err := end("describe engine", C.shim_context_info(l.api, (*C.sparsek_context)(context), &out)); err != nil {
		return ContextInfo{}, err
	}
	return ContextInfo{int32(out.backend), int(out.device), int(out.threads), C.GoString(out.reason), C.GoString(out.isa),
		out.gpu_fault != 0}, nil
}

// ContextDestroy calls context_destroy.
func (l *Library) ContextDestroy(context unsafe.Pointer) {
	C.shim_context_destroy(l.api, (*C.sparsek_context)(context))
}

// BSR is sparsek_bsr. The arrays may be Go's: they need be neither pinned nor kept alive but by the caller's hold on
// them during the call.
type BSR struct {
	Rows, Cols, BlockM, BlockK, Blocks int
	DType, IndexType, Memory           int32
	RowPtr, ColIdx, Values, BlockIdx   unsafe.Pointer
	Unsorted                           bool
	Stream                             uintptr // in whose order device arrays are read
	Async, Bound, Frozen               bool    // SPARSEK_BSR_ASYNC, SPARSEK_BSR_BOUND, SPARSEK_BSR_FROZEN
}

// c is C's form of a. Its arrays are pinned by pins.
func (a *BSR) c(pins *runtime.Pinner) C.sparsek_bsr {
	for _, array := range []unsafe.Pointer{a.RowPtr, a.ColIdx, a.Values, a.BlockIdx} {
		if array != nil {
			pins.Pin(array)
		}
	}
	return C.sparsek_bsr{
		abi_size: C.sizeof_sparsek_bsr,
		rows:     C.int64_t(a.Rows), cols: C.int64_t(a.Cols), block_m: C.int64_t(a.BlockM), block_k: C.int64_t(a.BlockK),
		nnzb:  C.int64_t(a.Blocks),
		dtype: C.int32_t(a.DType), index_type: C.int32_t(a.IndexType), memory: C.int32_t(a.Memory),
		row_ptr: a.RowPtr, col_idx: a.ColIdx, values: a.Values, block_idx: a.BlockIdx,
		flags: a.flags(),
	}
}

func (a *BSR) flags() (flags C.int32_t) {
	if a.Unsorted {
		flags |= C.SPARSEK_BSR_SORT
	}
	if a.Async {
		flags |= C.SPARSEK_BSR_ASYNC
	}
	if a.Bound {
		flags |= C.SPARSEK_BSR_BOUND
	}
	if a.Frozen {
		flags |= C.SPARSEK_BSR_FROZEN
	}
	return flags
}

// MatrixCreate calls matrix_create.
func (l *Library) MatrixCreate(context unsafe.Pointer, a BSR) (unsafe.Pointer, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	raw := a.c(&pins)
	var out *C.sparsek_matrix
	err := end("create matrix", C.shim_matrix_create(l.api, (*C.sparsek_context)(context), &raw, C.uintptr_t(a.Stream), &out))
	return unsafe.Pointer(out), err
}

// MatrixSetValues calls matrix_set_values.
func (l *Library) MatrixSetValues(matrix, values unsafe.Pointer, memory int32, stream uintptr) error {
	return end("set values", C.shim_matrix_set_values(l.api, (*C.sparsek_matrix)(matrix), values, C.int32_t(memory), C.uintptr_t(stream)))
}

// MatrixDestroy calls matrix_destroy.
func (l *Library) MatrixDestroy(matrix unsafe.Pointer) {
	C.shim_matrix_destroy(l.api, (*C.sparsek_matrix)(matrix))
}

// MatrixStatus calls matrix_status.
func (l *Library) MatrixStatus(matrix unsafe.Pointer, wait bool) error {
	return end("check matrix", C.shim_matrix_status(l.api, (*C.sparsek_matrix)(matrix), toFlag(wait)))
}

// MatrixRelease calls matrix_release.
func (l *Library) MatrixRelease(matrix unsafe.Pointer, stream uintptr) {
	C.shim_matrix_release(l.api, (*C.sparsek_matrix)(matrix), C.uintptr_t(stream))
}

// PlanOptions are sparsek_plan_options.
type PlanOptions struct {
	Op, OrderX               int32
	OrderB, OrderC           int32
	LDX                      int
	N, LDB, LDC              int
	Alignment, AlignmentC    int
	Kernel                   string
	DTypeB                   int32
	Output, Bias, Activation int32
	AllowDense               bool
	OwnKernels, NoUserCache  bool
	BatchInvariant           bool
	Workers                  int
	ValuesStatic             bool
	Compute                  int32
}

// c is C's form of o, all but the kernel.
func (o *PlanOptions) c() C.sparsek_plan_options {
	return C.sparsek_plan_options{
		abi_size: C.sizeof_sparsek_plan_options,
		n:        C.int64_t(o.N), ldb: C.int64_t(o.LDB), ldc: C.int64_t(o.LDC),
		op: C.int32_t(o.Op), order_x: C.int32_t(o.OrderX), order_b: C.int32_t(o.OrderB), order_c: C.int32_t(o.OrderC),
		ldx:       C.int64_t(o.LDX),
		alignment: toInt32(o.Alignment), alignment_c: toInt32(o.AlignmentC),
		dtype_b: C.int32_t(o.DTypeB), dtype_c: C.int32_t(o.Output), bias: C.int32_t(o.Bias), activation: C.int32_t(o.Activation),
		allow_dense: toFlag(o.AllowDense), workers: toInt32(o.Workers), values_static: toFlag(o.ValuesStatic),
		compute: C.int32_t(o.Compute),
		flags: toFlag(o.OwnKernels)*C.SPARSEK_OWN_KERNELS | toFlag(o.NoUserCache)*C.SPARSEK_NO_USER_CACHE |
			toFlag(o.BatchInvariant)*C.SPARSEK_BATCH_INVARIANT,
	}
}

// PlanCreate calls plan_create.
func (l *Library) PlanCreate(matrix unsafe.Pointer, options PlanOptions) (unsafe.Pointer, error) {
	const op = "create plan"
	raw := options.c()
	name, err := kernelName(op, options.Kernel)
	if err != nil {
		return nil, err
	}
	raw.kernel = name
	defer C.free(unsafe.Pointer(name))
	var out *C.sparsek_plan
	err = end(op, C.shim_plan_create(l.api, (*C.sparsek_matrix)(matrix), &raw, &out))
	return unsafe.Pointer(out), err
}

// kernelName is a kernel's name, to be freed; nil for "".
func kernelName(op, name string) (*C.char, error) {
	if name == "" {
		return nil, nil
	}
	if strings.ContainsRune(name, 0) {
		return nil, NewError(op, NoSuchKernel, "kernel "+strings.ReplaceAll(name, "\x00", "\\x00")+": a name has no zero byte")
	}
	return C.CString(name), nil
}

// PlanInfo is sparsek_plan_info. Times are in seconds.
type PlanInfo struct {
	Kernel, Reason, Warning string
	TileM, TileN, TileK     int
	Stages                  int
	Tiles, Entries          int64
	WorkspaceBytes          int64
	ProductBytes, KeptBytes int64
	UnitRoundoff            float64
	ProductRoundoff         float64
	CopiesA                 bool
	CopiesB, CopiesC        bool
	Recomputed              int64
	ChosenBy                int32
	Predicted, Measured     float64
}

// PlanInfo calls plan_info, which waits for the device where the plan was in use.
func (l *Library) PlanInfo(plan unsafe.Pointer) (PlanInfo, error) {
	var out C.sparsek_plan_info
	if err := end("describe plan", C.shim_plan_info(l.api, (*C.sparsek_plan)(plan), &out)); err != nil {
		return PlanInfo{}, err
	}
	return planInfo(&out), nil
}

// PlanDescribe calls plan_describe, which never waits.
func (l *Library) PlanDescribe(plan unsafe.Pointer) (PlanInfo, error) {
	var out C.sparsek_plan_info
	if err := end("describe plan", C.shim_plan_describe(l.api, (*C.sparsek_plan)(plan), &out)); err != nil {
		return PlanInfo{}, err
	}
	return planInfo(&out), nil
}

func planInfo(out *C.sparsek_plan_info) PlanInfo {
	return PlanInfo{
		Kernel: C.GoString(out.kernel), Reason: C.GoString(out.reason), Warning: C.GoString(out.warning),
		TileM: int(out.tile_m), TileN: int(out.tile_n), TileK: int(out.tile_k),
		Stages: int(out.stages),
		Tiles:  int64(out.tiles), Entries: int64(out.entries),
		WorkspaceBytes: int64(out.workspace_bytes),
		ProductBytes:   int64(out.product_bytes), KeptBytes: int64(out.kept_bytes),
		UnitRoundoff: float64(out.unit_roundoff), ProductRoundoff: float64(out.product_roundoff),
		CopiesA: out.copies&C.SPARSEK_COPIES_A != 0, CopiesB: out.copies&C.SPARSEK_COPIES_B != 0, CopiesC: out.copies&C.SPARSEK_COPIES_C != 0,
		Recomputed: int64(out.recomputed),
		ChosenBy:   int32(out.chosen_by),
		Predicted:  float64(out.predicted_seconds), Measured: float64(out.measured_seconds),
	}
}

// PlanUpdate calls plan_update.
func (l *Library) PlanUpdate(plan unsafe.Pointer, a BSR) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	raw := a.c(&pins)
	return end("update plan", C.shim_plan_update(l.api, (*C.sparsek_plan)(plan), &raw, C.uintptr_t(a.Stream)))
}

// PlanRelease calls plan_release.
func (l *Library) PlanRelease(plan unsafe.Pointer, stream uintptr) {
	C.shim_plan_release(l.api, (*C.sparsek_plan)(plan), C.uintptr_t(stream))
}

// PlanDestroy calls plan_destroy.
func (l *Library) PlanDestroy(plan unsafe.Pointer) {
	C.shim_plan_destroy(l.api, (*C.sparsek_plan)(plan))
}

// PlanLayout is sparsek_plan_layout.
type PlanLayout struct{ c C.sparsek_plan_layout }

// Bytes is what a plan takes.
func (l *PlanLayout) Bytes() int { return int(l.c.bytes) }

// WorkspaceBytes is what a product takes.
func (l *PlanLayout) WorkspaceBytes() int { return int(l.c.workspace_bytes) }

// PlanMeasure calls plan_measure.
func (l *Library) PlanMeasure(context unsafe.Pointer, shape BSR, options PlanOptions) (out PlanLayout, err error) {
	const op = "measure plan"
	var pins runtime.Pinner
	defer pins.Unpin()
	bsr, raw := shape.c(&pins), options.c()
	name, err := kernelName(op, options.Kernel)
	if err != nil {
		return out, err
	}
	raw.kernel = name
	defer C.free(unsafe.Pointer(name))
	out.c.abi_size = C.sizeof_sparsek_plan_layout
	err = end(op, C.shim_plan_measure(l.api, (*C.sparsek_context)(context), &bsr, &raw, &out.c))
	return out, err
}

// PlanWrite is what plan_write is given.
type PlanWrite struct {
	Index         BSR
	Layout        *PlanLayout
	Memory, Fault unsafe.Pointer
}

// PlanWrite calls plan_write.
func (l *Library) PlanWrite(context unsafe.Pointer, w PlanWrite) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	raw := w.Index.c(&pins)
	return end("write plan", C.shim_plan_write(l.api, (*C.sparsek_context)(context), &raw, C.uintptr_t(w.Index.Stream), &w.Layout.c,
		w.Memory, (*C.int64_t)(w.Fault)))
}

// PlanRun calls plan_run.
func (l *Library) PlanRun(context unsafe.Pointer, layout *PlanLayout, memory, workspace unsafe.Pointer, p Product) error {
	return end("multiply", C.shim_plan_run(l.api, (*C.sparsek_context)(context), &layout.c, memory, workspace, p.sizes(), p.X.Data, p.B.Data,
		p.C.Data, p.Input.Data, p.Bias, p.Values, p.AlphaScale, p.BetaScale))
}

// Operand is a dense matrix without its type: the address of its first element, and its stride in elements.
type Operand struct {
	Data   unsafe.Pointer
	Stride int
}

// OneRow is the stride of an input that is one row for all rows of C.
const OneRow = -1

// Product is what one product is given: sparsek_multiply_args. What it does not have is nil.
type Product struct {
	Alpha, Beta           float32
	N                     int
	X, B, C, Input        Operand // X is SDD's
	Bias, Values          unsafe.Pointer
	AlphaScale, BetaScale unsafe.Pointer
	Stream                uintptr

	Workspace      unsafe.Pointer
	WorkspaceBytes int
	// Products, and the elements from one to the next.
	Batch                                     int
	StepX, StepB, StepC, StepValues, StepBias int
}

func (p *Product) sizes() C.shim_product {
	return C.shim_product{alpha: C.float(p.Alpha), beta: C.float(p.Beta), n: C.int64_t(p.N), ldb: C.int64_t(p.B.Stride),
		ldc: C.int64_t(p.C.Stride), ldc_in: C.int64_t(p.Input.Stride), stream: C.uintptr_t(p.Stream),
		ldx: C.int64_t(p.X.Stride), stride_x: C.int64_t(p.StepX),
		workspace_bytes: C.size_t(p.WorkspaceBytes), batch: toInt32(p.Batch), stride_b: C.int64_t(p.StepB),
		stride_c: C.int64_t(p.StepC), stride_values: C.int64_t(p.StepValues), stride_bias: C.int64_t(p.StepBias)}
}

// Multiply calls multiply. The addresses are arguments and not members of a struct: that way Go's memory needs no
// pinning, which would cost as much as the call.
func (l *Library) Multiply(plan unsafe.Pointer, p Product) error {
	return end("multiply", C.shim_multiply(l.api, (*C.sparsek_plan)(plan), p.sizes(), p.X.Data, p.B.Data, p.C.Data, p.Input.Data, p.Bias,
		p.Values, p.AlphaScale, p.BetaScale, p.Workspace))
}

// SPDX-License-Identifier: Apache-2.0

package native

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Bits of AttentionOptions.Flags.
const (
	AttentionRight     int32 = C.SPARSEK_ATTENTION_RIGHT
	AttentionLeft      int32 = C.SPARSEK_ATTENTION_LEFT
	AttentionAlignEnds int32 = C.SPARSEK_ATTENTION_ALIGN_ENDS
	AttentionAnyOrder  int32 = C.SPARSEK_ATTENTION_ANY_ORDER
)

// AttentionOptions is sparsek_attention_options.
type AttentionOptions struct {
	Batch, HeadsQ, HeadsK    int
	SeqQ, SeqK               int
	HeadSize, HeadSizeV      int
	Layout                   *BSR // nil: every block
	LayoutBatch, LayoutHeads int
	WindowLeft, WindowRight  int
	Scale, SoftCap           float64
	DType, DTypeO, Flags     int32 // DTypeO of O; 0: chosen by DType
	Kernel                   string
	Workers                  int
}

// c gives C's form, which stays good until free is called. pins keeps what it points to in place.
func (o *AttentionOptions) c(pins *runtime.Pinner) (options *C.sparsek_attention_options, free func()) {
	options = &C.sparsek_attention_options{
		batch: C.int64_t(o.Batch), heads_q: C.int64_t(o.HeadsQ), heads_k: C.int64_t(o.HeadsK), seq_q: C.int64_t(o.SeqQ), seq_k: C.int64_t(o.SeqK),
		head_size: C.int64_t(o.HeadSize), head_size_v: C.int64_t(o.HeadSizeV),
		layout_batch: C.int64_t(o.LayoutBatch), layout_heads: C.int64_t(o.LayoutHeads),
		window_left: C.int64_t(o.WindowLeft), window_right: C.int64_t(o.WindowRight), scale: C.double(o.Scale), soft_cap: C.double(o.SoftCap),
		dtype: C.int32_t(o.DType), dtype_o: C.int32_t(o.DTypeO), flags: C.int32_t(o.Flags), workers: toInt32(o.Workers),
	}
	if o.Layout != nil {
		layout := new(C.sparsek_bsr)
		*layout = o.Layout.c(pins)
		pins.Pin(layout)
		options.layout = layout
	}
	if o.Kernel == "" {
		return options, func() {}
	}
	name := C.CString(o.Kernel)
	options.kernel = name
	return options, func() { C.free(unsafe.Pointer(name)) }
}

// Block is how many queries and keys a block has.
func (o *AttentionOptions) Block() [2]int {
	const whole = 128 // without a layout
	if o.Layout == nil {
		return [2]int{whole, whole}
	}
	return [2]int{o.Layout.BlockM, o.Layout.BlockK}
}

// AttentionInfo is sparsek_attention_info.
type AttentionInfo struct {
	Kernel, Backward              string
	Blocks, Partial, Pairs        int64
	ForwardBytes, BackwardBytes   int64
	UnitRoundoff, ProductRoundoff float64
}

// Tensor is an operand of attention; nil Data: there is none.
type Tensor struct {
	Data   unsafe.Pointer
	Stride [3]int
}

// AttentionArgs is sparsek_attention_args. Addresses of Go's memory must be pinned.
type AttentionArgs struct {
	Q, K, V, O                 Tensor
	LSE                        unsafe.Pointer
	LengthsQ, LengthsK         unsafe.Pointer
	GradO, GradQ, GradK, GradV Tensor
	Mass                       unsafe.Pointer
	Bias                       Bias
	MaskBits, MaskIndex        unsafe.Pointer
	MaskBlocks                 int
	GradBias                   unsafe.Pointer
	Pages                      Pages
	ScaleQ, ScaleK, ScaleV     unsafe.Pointer // of fp32
	Stream                     uintptr
}

// Pages are those that keys and values lie in; 0 Rows: they lie in none.
type Pages struct {
	Table       unsafe.Pointer
	Stride      int // of a batch; 0: without gaps
	Count, Rows int
}

// TableSize is how many elements the table has, for so many batches of so many keys; 0 where there are no pages.
func (p Pages) TableSize(batch, keys int) int {
	if p.Rows == 0 || batch == 0 || keys == 0 {
		return 0
	}
	own := (keys + p.Rows - 1) / p.Rows
	if p.Stride == 0 {
		return batch * own
	}
	return (batch-1)*p.Stride + own
}

// Bias is added to the scores of attention; nil Data: there is none.
type Bias struct {
	Data   unsafe.Pointer
	Stride [4]int
	DType  int32
}

func (t Tensor) strides() (s [3]C.int64_t) {
	for i, stride := range t.Stride {
		s[i] = C.int64_t(stride)
	}
	return s
}

func (a *AttentionArgs) c() C.sparsek_attention_args {
	return C.sparsek_attention_args{
		q: a.Q.Data, k: a.K.Data, v: a.V.Data, o: a.O.Data, lse: a.LSE,
		stride_q: a.Q.strides(), stride_k: a.K.strides(), stride_v: a.V.strides(), stride_o: a.O.strides(),
		lengths_q: (*C.int32_t)(a.LengthsQ), lengths_k: (*C.int32_t)(a.LengthsK),
		grad_o: a.GradO.Data, grad_q: a.GradQ.Data, grad_k: a.GradK.Data, grad_v: a.GradV.Data,
		stride_grad_o: a.GradO.strides(), stride_grad_q: a.GradQ.strides(), stride_grad_k: a.GradK.strides(), stride_grad_v: a.GradV.strides(),
		mass: a.Mass,
		bias: a.Bias.Data, bias_dtype: C.int32_t(a.Bias.DType),
		stride_bias: [4]C.int64_t{C.int64_t(a.Bias.Stride[0]), C.int64_t(a.Bias.Stride[1]), C.int64_t(a.Bias.Stride[2]), C.int64_t(a.Bias.Stride[3])},
		mask:        (*C.uint32_t)(a.MaskBits), mask_index: (*C.int32_t)(a.MaskIndex), mask_blocks: C.int64_t(a.MaskBlocks),
		grad_bias:  a.GradBias,
		page_table: (*C.int32_t)(a.Pages.Table), page_table_stride: C.int64_t(a.Pages.Stride), pages: C.int64_t(a.Pages.Count), page_rows: C.int64_t(a.Pages.Rows),
		scale_q: (*C.float)(a.ScaleQ), scale_k: (*C.float)(a.ScaleK), scale_v: (*C.float)(a.ScaleV),
	}
}

// AttentionCreate calls attention_create.
func (l *Library) AttentionCreate(context unsafe.Pointer, o AttentionOptions) (unsafe.Pointer, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	options, free := o.c(&pins)
	defer free()
	var stream uintptr
	if o.Layout != nil {
		stream = o.Layout.Stream
	}
	var out *C.sparsek_attention
	err := end("create attention", C.shim_attention_create(l.api, (*C.sparsek_context)(context), options, C.uintptr_t(stream), &out))
	return unsafe.Pointer(out), err
}

// AttentionUpdate calls attention_update.
func (l *Library) AttentionUpdate(attention unsafe.Pointer, layout BSR) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	raw := layout.c(&pins)
	return end("update attention", C.shim_attention_update(l.api, (*C.sparsek_attention)(attention), &raw, C.uintptr_t(layout.Stream)))
}

// AttentionStatus calls attention_status.
func (l *Library) AttentionStatus(attention unsafe.Pointer, wait bool) error {
	return end("check attention's layout", C.shim_attention_status(l.api, (*C.sparsek_attention)(attention), toFlag(wait)))
}

// AttentionInfo calls attention_info.
func (l *Library) AttentionInfo(attention unsafe.Pointer) (AttentionInfo, error) {
	var out C.sparsek_attention_info
	err := end("describe attention", C.shim_attention_info(l.api, (*C.sparsek_attention)(attention), &out))
	return AttentionInfo{Kernel: C.GoString(out.kernel), Backward: C.GoString(out.backward),
		Blocks: int64(out.blocks), Partial: int64(out.partial), Pairs: int64(out.pairs),
		ForwardBytes: int64(out.forward_bytes), BackwardBytes: int64(out.backward_bytes),
		UnitRoundoff: float64(out.unit_roundoff), ProductRoundoff: float64(out.product_roundoff)}, err
}

// AttentionDestroy calls attention_destroy.
func (l *Library) AttentionDestroy(attention unsafe.Pointer) {
	C.shim_attention_destroy(l.api, (*C.sparsek_attention)(attention))
}

// AttentionRun calls attention_forward or attention_backward.
func (l *Library) AttentionRun(op string, attention unsafe.Pointer, a AttentionArgs, backward bool) error {
	args := a.c()
	return end(op, C.shim_attention_run(l.api, (*C.sparsek_attention)(attention), &args, toFlag(backward), C.uintptr_t(a.Stream)))
}

// AttentionTime calls attention_time with one set of operands; each element of seconds gets the time of one call.
func (l *Library) AttentionTime(attention unsafe.Pointer, a AttentionArgs, backward bool, warmup int, seconds []float64) error {
	args := a.c()
	return end("time attention", C.shim_attention_time(l.api, (*C.sparsek_attention)(attention), &args, toFlag(backward), C.uintptr_t(a.Stream),
		toInt32(warmup), toInt32(len(seconds)), (*C.double)(unsafe.SliceData(seconds))))
}

// AttentionCheck calls attention_check. The report is filled in where an element is beyond its bound, too.
func (l *Library) AttentionCheck(o AttentionOptions, a AttentionArgs, output int32, info AttentionInfo, threads int) (CheckReport, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	options, free := o.c(&pins)
	defer free()
	args := a.c()
	var out C.sparsek_check_report
	err := end("check attention", C.shim_attention_check(l.api, options, &args, C.int32_t(output), C.double(info.UnitRoundoff),
		C.double(info.ProductRoundoff), toInt32(threads), &out))
	return reportOf(&out), err
}

// PoolArgs is sparsek_pool_args. Addresses of Go's memory must be pinned.
type PoolArgs struct {
	Extents [4]int // batches, heads, rows, head size
	Block   int
	X       Tensor
	Out     unsafe.Pointer
	DType   int32
	Memory  int32
}

// AttentionPool calls attention_pool.
func (l *Library) AttentionPool(context unsafe.Pointer, a PoolArgs, stream uintptr) error {
	args := C.sparsek_pool_args{batch: C.int64_t(a.Extents[0]), heads: C.int64_t(a.Extents[1]), seq: C.int64_t(a.Extents[2]),
		head_size: C.int64_t(a.Extents[3]), block: C.int64_t(a.Block), x: a.X.Data, stride_x: a.X.strides(), out: a.Out,
		dtype: C.int32_t(a.DType), memory: C.int32_t(a.Memory)}
	return end("pool rows", C.shim_attention_pool(l.api, (*C.sparsek_context)(context), &args, C.uintptr_t(stream)))
}

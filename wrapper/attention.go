// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// AttentionOptions say what attention is computed: for each batch and head O = softmax(S) V with S = Scale Q K^T, over
// the keys that a query sees, and the gradients of that. Query head h has key head h / (HeadsQ / HeadsK).
//
// Query i sees key j where the layout has their block, both are below the lengths of their sequences, and the rules let
// it: with p = i, or with AlignEnds p = i + length of keys - length of queries, j <= p + WindowRight and
// j >= p - WindowLeft.
type AttentionOptions struct {
	Batch          int
	HeadsQ, HeadsK int // HeadsQ is a multiple of HeadsK, which V has too
	SeqQ, SeqK     int
	HeadSize       int // of Q and K
	HeadSizeV      int // of V and O; 0: HeadSize

	LayoutBatch int // whose layouts there are: 1, for all the same, or Batch; 0: 1
	LayoutHeads int // a divisor of HeadsQ: so many heads one after the other share a layout; 0: 1

	Causal      bool // a limit on the right of 0
	WindowRight *int // nil: no limit
	WindowLeft  *int
	AlignEnds   bool // the last query is at the last key

	Scale   float64 // 0: 1 / sqrt(HeadSize)
	SoftCap float64 // above 0: S = SoftCap tanh(Scale Q K^T / SoftCap)
	Output  DType   // of O; 0: that of Q, or BF16 where Q is of Float8E4M3, which may also have an O of FP16
	Kernel  string  // by name; empty: the library chooses
	Workers int     // CTAs or threads of a call; 0: EngineOptions.Workers, and all where that is 0

	// AnyOrder lets the backward pass add the parts of the gradient of Q in any order: faster on a GPU, with more workspace.
	// The last bits of that gradient then differ from call to call.
	AnyOrder bool
}

// AttentionInfo says how attention is computed.
type AttentionInfo struct {
	Kernel   string // of the forward pass
	Backward string // of the backward pass; empty where it is not served
	// Of one call with sequences of full length, over all batches and heads; of a layout in device memory: -1.
	Blocks        int64 // that are computed
	PartialBlocks int64 // of these, blocks that a rule or the end of a sequence cuts
	Pairs         int64 // a query and a key that it sees: 2 (HeadSize + HeadSizeV) operations of a forward pass
	// Of device memory: the workspace of one call.
	ForwardBytes, BackwardBytes   int64
	UnitRoundoff, ProductRoundoff float64 // package check needs them
}

// Attention is how attention over one layout is computed: made once, used for any number of calls, also from several
// goroutines at once.
type Attention struct {
	handle *handle
	engine *Engine
	dtype  DType
	block  [2]int // of queries and keys
	// hasLayout: LayoutBatch and LayoutHeads of opts have a meaning.
	hasLayout bool
	opts      AttentionOptions
	info      AttentionInfo
}

// NewAttention makes attention over the blocks of layout, or over all where it is nil. A layout is a pattern without
// Values: its block rows are, one after the other, those of each layout batch and layout head, ceil(SeqQ / BlockM) each,
// and Rows is their number times BlockM; Cols is SeqK. It is copied. T is the type of Q, K, V, the gradients and, where
// AttentionOptions.Output does not say otherwise, O.
func NewAttention[T Element, I Index](ctx context.Context, e *Engine, layout *BSR[T, I], opts AttentionOptions) (*Attention, error) {
	const op = "create attention"
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	if err := e.made(op); err != nil {
		return nil, err
	}
	if opts.Workers == 0 {
		opts.Workers = e.workers
	}
	raw, err := layout.attention(op, opts)
	if err != nil {
		return nil, err
	}
	return e.attention(raw, DTypeOf[T](), opts)
}

// attention makes the native attention.
func (e *Engine) attention(raw native.AttentionOptions, dtype DType, opts AttentionOptions) (*Attention, error) {
	if err := e.handle.acquire(); err != nil {
		return nil, err
	}
	defer e.handle.release()
	lib := e.lib.native
	pointer, err := lib.AttentionCreate(e.handle.pointer, raw)
	if err != nil {
		return nil, err
	}
	info, err := lib.AttentionInfo(pointer)
	if err != nil {
		lib.AttentionDestroy(pointer)
		return nil, err
	}
	h := newHandle("attention", pointer, e.handle, func() { lib.AttentionDestroy(pointer) })
	a := &Attention{handle: h, engine: e, dtype: dtype, block: raw.Block(), hasLayout: raw.Layout != nil, opts: opts, info: AttentionInfo{
		Kernel: info.Kernel, Backward: info.Backward, Blocks: info.Blocks, PartialBlocks: info.Partial, Pairs: info.Pairs,
		ForwardBytes: info.ForwardBytes, BackwardBytes: info.BackwardBytes, UnitRoundoff: info.UnitRoundoff, ProductRoundoff: info.ProductRoundoff}}
	runtime.AddCleanup(a, (*handle).close, h)
	return a, nil
}

// attention is C's form of the options of attention with this layout, which may be nil.
func (layout *BSR[T, I]) attention(op string, o AttentionOptions) (native.AttentionOptions, error) {
	raw, err := o.raw(op, DTypeOf[T]())
	if err != nil || layout == nil {
		return raw, err
	}
	if layout.Values != nil {
		return raw, fault(op, ErrBadArgument, "the layout has Values: a pattern without them is needed")
	}
	bsr, err := layout.checked(op)
	raw.Layout = &bsr
	return raw, err
}

// output is the type of O, where Q is of dtype.
func (o *AttentionOptions) output(dtype DType) DType {
	switch {
	case o.Output != 0:
		return o.Output
	case dtype == E4M3:
		return BF16
	}
	return dtype
}

// raw is C's form of the options, without a layout.
func (o *AttentionOptions) raw(op string, dtype DType) (native.AttentionOptions, error) {
	raw := native.AttentionOptions{Batch: o.Batch, HeadsQ: o.HeadsQ, HeadsK: o.HeadsK, SeqQ: o.SeqQ, SeqK: o.SeqK,
		HeadSize: o.HeadSize, HeadSizeV: o.HeadSizeV, LayoutBatch: o.LayoutBatch, LayoutHeads: o.LayoutHeads,
		Scale: o.Scale, SoftCap: o.SoftCap, DType: int32(dtype), DTypeO: int32(o.Output), Kernel: o.Kernel, Workers: o.Workers}
	if o.Causal && o.WindowRight != nil {
		return raw, fault(op, ErrBadArgument, "Causal and WindowRight are both set: causal attention is a WindowRight of 0")
	}
	switch {
	case o.Causal:
		raw.Flags |= native.AttentionRight
	case o.WindowRight != nil:
		raw.Flags |= native.AttentionRight
		raw.WindowRight = *o.WindowRight
	}
	if o.WindowLeft != nil {
		raw.Flags |= native.AttentionLeft
		raw.WindowLeft = *o.WindowLeft
	}
	if o.AlignEnds {
		raw.Flags |= native.AttentionAlignEnds
	}
	if o.AnyOrder {
		raw.Flags |= native.AttentionAnyOrder
	}
	return raw, nil
}

// Info says how the attention is computed.
func (a *Attention) Info() AttentionInfo { return a.info }

// Close waits for the calls in progress and for the streams' work, and frees the attention. Closing again does nothing.
func (a *Attention) Close() error {
	if a.made("close") == nil {
		a.handle.close()
	}
	return nil
}

// made refuses a nil attention and the zero value.
func (a *Attention) made(op string) error {
	if a == nil || a.handle == nil {
		return fault(op, ErrNullPointer, "there is no attention: make one by NewAttention")
	}
	return nil
}

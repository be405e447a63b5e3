// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Heads is an operand of attention, (batch, heads, rows, size), in host memory (Data) or in a buffer. Element
// (b, h, i, d) is element Offset + b Stride[0] + h Stride[1] + i Stride[2] + d of it. A Stride of zeros: no gaps.
type Heads[T Element] struct {
	Batch, Heads, Rows, Size int
	Stride                   [3]int
	Data                     []T
	Buffer                   *DeviceBuffer[T]
	Offset                   int
}

// HeadsOperand is [Heads] of any type.
type HeadsOperand interface {
	heads() heads
}

// heads is Heads without its type.
type heads struct {
	extents  [4]int
	stride   [3]int
	dtype    DType
	elements int // from the first on
	host     unsafe.Pointer
	buffer   *handle
	engine   *Engine
	offset   int
}

func (t Heads[T]) heads() heads {
	h := heads{extents: [4]int{t.Batch, t.Heads, t.Rows, t.Size}, stride: t.Stride, dtype: DTypeOf[T](), offset: t.Offset}
	if t.Buffer != nil {
		h.elements, h.buffer, h.engine = t.Buffer.n-t.Offset, t.Buffer.handle, t.Buffer.engine
	} else {
		h.elements, h.host = len(t.Data)-t.Offset, addressOf(t.Data)
	}
	return h
}

// AttentionOperands are what a call of [Attention] is given. Q, O and their gradients are (Batch, HeadsQ, SeqQ, size), K, V
// and theirs (Batch, HeadsK, SeqK, size), of the attention's type, O of that of its Output, and on a GPU in buffers. What is
// written must not overlap what is read.
type AttentionOperands struct {
	Q, K, V HeadsOperand
	O       HeadsOperand // Forward writes it, and Backward reads it
	// LSE is the logarithm of the sum of exp(S) of each query, (Batch, HeadsQ, SeqQ, 1) without gaps, of float32, or float64
	// where Q is of it. Forward writes it where it is not nil, and Backward reads it.
	LSE HeadsOperand
	// LengthsQ and LengthsK (Batch) are how long each sequence is, read when the call runs; nil: SeqQ, SeqK. Beyond them
	// nothing is read, and what is written becomes 0, in LSE -Inf.
	LengthsQ, LengthsK *DeviceBuffer[int32]

	// Mass is what share of the weights each block has, the sum of exp(S - LSE) over its queries and keys: (Batch, HeadsQ,
	// blocks of queries, blocks of keys) without gaps, of the type of LSE, and 0 where the layout has no block. Without a
	// layout blocks are 128 x 128. Forward writes it where it is not nil, and then needs LSE.
	Mass HeadsOperand

	// ScaleQ (Batch, HeadsQ, 1, 1), ScaleK and ScaleV (Batch, HeadsK, 1, 1), of float32 and without gaps, are what elements of
	// Float8E4M3 are multiplied by: S = Scale ScaleQ ScaleK Q K^T, O = ScaleV softmax(S) V. They are finite and above 0, and read
	// when the call runs; nil: 1. Of other types: nil.
	ScaleQ, ScaleK, ScaleV HeadsOperand

	// Bias is added to the scores, after the soft cap: (Batch, HeadsQ, SeqQ, SeqK), of the type of O, or of float32 where
	// that has 16 bits. Where one of the first three extents is 1, all batches, heads or queries have the same. -Inf hides the
	// key from the query. Only pairs of blocks that are computed are read.
	Bias HeadsOperand
	Mask *AttentionMask // nil: all pairs of the layout's blocks see each other

	// Pages, where it is not nil, tells in which pages of a cache the keys of each batch lie. K and V are then such a cache,
	// (pages, HeadsK, rows of a page, size), of a cache of (pages, rows of a page, HeadsK, size) by Stride. Of Forward alone.
	Pages *AttentionPages

	// Of Backward: the gradient of O, and those that are written, of which nil ones are not computed.
	GradO               HeadsOperand
	GradQ, GradK, GradV HeadsOperand
	// GradBias is that of Bias before it is added up over what shares an element: (Batch, HeadsQ, SeqQ, SeqK) without gaps, of the
	// type of LSE, 0 where the query does not see the key.
	GradBias HeadsOperand
}

// Forward computes O, and LSE, behind what is in stream s already; on the CPU it is done on return.
func (a *Attention) Forward(ctx context.Context, s *Stream, o AttentionOperands) error {
	return a.run(ctx, "attention forward", s, o, false)
}

// Backward computes gradients of Q, K and V as Forward does O. The same attention gives the same bits each time.
func (a *Attention) Backward(ctx context.Context, s *Stream, o AttentionOperands) error {
	return a.run(ctx, "attention backward", s, o, true)
}

func (a *Attention) run(ctx context.Context, op string, s *Stream, o AttentionOperands, backward bool) error {
	c, args, pins := a.bind(ctx, op, s, o, backward)
	defer pins.Unpin() // host memory is the CPU's, which is done then
	return c.enqueue(func(lib *native.Library, _ unsafe.Pointer, stream uintptr) error {
		args.Stream = stream
		return lib.AttentionRun(op, a.handle.pointer, args, backward)
	})
}

// begin takes the attention and sets of operands into use, in a stream of their own.
func (a *Attention) begin(ctx context.Context, op string, sets []AttentionOperands, backward bool) (*bridge.AttentionUse, error) {
	if err := a.made(op); err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		return nil, fault(op, ErrBadSize, "no operands")
	}
	stream, err := a.engine.NewStream()
	if err != nil {
		return nil, err
	}
	var calls []*call
	var pinned []*runtime.Pinner
	end := func() {
		_ = stream.Wait(context.Background())
		for i, c := range calls {
			c.use.release()
			pinned[i].Unpin()
		}
		_ = stream.Close()
	}
	use := &bridge.AttentionUse{Native: a.engine.lib.native, Pointer: a.handle.pointer, End: end}
	for i, o := range sets {
		c, args, pins := a.bind(ctx, op, stream, o, backward)
		calls, pinned = append(calls, c), append(pinned, pins)
		if c.err != nil {
			end()
			return nil, fmt.Errorf("operands %d: %w", i, c.err)
		}
		args.Stream = stream.queue.stream
		use.Args = append(use.Args, args)
	}
	return use, nil
}

// bind takes the attention and its operands into use.
func (a *Attention) bind(ctx context.Context, op string, s *Stream, o AttentionOperands, backward bool) (*call, native.AttentionArgs, *runtime.Pinner) {
	var args native.AttentionArgs
	pins := new(runtime.Pinner)
	if err := a.made(op); err != nil {
		return &call{op: op, err: err}, args, pins
	}
	c := newCall(ctx, op, s)
	if c.err == nil && c.engine != a.engine {
		c.err = fault(op, ErrBadArgument, "the stream is of another engine than the attention")
	}
	if c.err == nil {
		c.err = c.use.add(a.handle)
	}
	args.LengthsQ = at(c, "LengthsQ", o.LengthsQ, a.opts.Batch, false)
	args.LengthsK = at(c, "LengthsK", o.LengthsK, a.opts.Batch, false)
	if o.Mask != nil {
		a.mask(c, o.Mask, &args)
	}
	if c.err == nil {
		c.err = a.opts.operands(op, a.dtype, a.block, o, backward, &args, func(name string, h heads) (unsafe.Pointer, error) {
			return c.address(name, h, pins)
		})
	}
	if c.err == nil && o.Pages != nil {
		args.Pages.Table = at(c, "Pages.Table", o.Pages.Table, args.Pages.TableSize(a.opts.Batch, a.opts.SeqK), true)
	}
	runtime.KeepAlive(o)
	return c, args, pins
}

// address takes an operand into use.
func (c *call) address(name string, h heads, pins *runtime.Pinner) (unsafe.Pointer, error) {
	if h.buffer == nil {
		if c.engine.info.Backend == CUDA {
			return nil, fault(c.op, ErrWrongMemory, "%s is in host memory: use a buffer", name)
		}
		return h.pinned(pins), nil
	}
	if h.engine != c.engine {
		return nil, fault(c.op, ErrBadArgument, "%s is in a buffer of another engine", name)
	}
	if err := c.use.add(h.buffer); err != nil {
		return nil, err
	}
	return unsafe.Add(h.buffer.pointer, h.offset*h.dtype.size()), nil
}

func (h *heads) pinned(pins *runtime.Pinner) unsafe.Pointer {
	if h.host == nil {
		return nil
	}
	pins.Pin(h.host)
	return unsafe.Add(h.host, h.offset*h.dtype.size())
}

// operands checks the sizes of all operands, and fills args with what address gives of each.
func (o *AttentionOptions) operands(op string, dtype DType, block [2]int, given AttentionOperands, backward bool, args *native.AttentionArgs,
	address func(name string, h heads) (unsafe.Pointer, error)) error {
	if backward && dtype == E4M3 {
		return fault(op, ErrNoSuchKernel, "no kernel has the backward pass of %v: make attention of bf16 or fp16 for it", dtype)
	}
	sizeV := o.HeadSizeV
	if sizeV == 0 {
		sizeV = o.HeadSize
	}
	sums := FP32
	if dtype == FP64 {
		sums = FP64
	}
	query := func(size int) [4]int { return [4]int{o.Batch, o.HeadsQ, o.SeqQ, size} }
	key := func(size int) [4]int { return [4]int{o.Batch, o.HeadsK, o.SeqK, size} }
	cached, err := given.pages(op)
	if err != nil {
		return err
	}
	args.Pages = cached
	cache := key
	if cached.Rows > 0 {
		cache = func(size int) [4]int { return [4]int{cached.Count, o.HeadsK, cached.Rows, size} }
	}
	blocks := [4]int{o.Batch, o.HeadsQ, (o.SeqQ + block[0] - 1) / block[0], (o.SeqK + block[1] - 1) / block[1]}
	outputs := o.output(dtype)
	var lse, mass, gradBias, scaleQ, scaleK, scaleV native.Tensor
	for _, x := range []struct {
		name   string
		given  HeadsOperand
		want   [4]int
		dtype  DType
		to     *native.Tensor
		wanted bool
	}{
		{"Q", given.Q, query(o.HeadSize), dtype, &args.Q, true},
		{"K", given.K, cache(o.HeadSize), dtype, &args.K, true},
		{"V", given.V, cache(sizeV), dtype, &args.V, true},
		{"O", given.O, query(sizeV), outputs, &args.O, true},
		{"ScaleQ", given.ScaleQ, [4]int{o.Batch, o.HeadsQ, 1, 1}, FP32, &scaleQ, false},
		{"ScaleK", given.ScaleK, [4]int{o.Batch, o.HeadsK, 1, 1}, FP32, &scaleK, false},
		{"ScaleV", given.ScaleV, [4]int{o.Batch, o.HeadsK, 1, 1}, FP32, &scaleV, false},
		{"LSE", given.LSE, query(1), sums, &lse, backward || given.Mass != nil},
		{"Mass", given.Mass, blocks, sums, &mass, false},
		{"GradO", given.GradO, query(sizeV), dtype, &args.GradO, backward},
		{"GradQ", given.GradQ, query(o.HeadSize), dtype, &args.GradQ, false},
		{"GradK", given.GradK, key(o.HeadSize), dtype, &args.GradK, false},
		{"GradV", given.GradV, key(sizeV), dtype, &args.GradV, false},
		{"GradBias", given.GradBias, query(o.SeqK), sums, &gradBias, false},
	} {
		if x.given == nil || x.name == "Mass" && backward || x.name == "GradBias" && !backward {
			if x.wanted {
				return fault(op, ErrNullPointer, "%s is nil", x.name)
			}
			continue
		}
		h := x.given.heads()
		if err := h.check(op, x.name, x.want, x.dtype); err != nil {
			return err
		}
		switch x.name {
		case "LSE", "Mass", "GradBias", "ScaleQ", "ScaleK", "ScaleV":
			if h.stride != [3]int{} {
				return fault(op, ErrBadLeadingDimension, "%s has strides: it is without gaps", x.name)
			}
		}
		data, err := address(x.name, h)
		if err != nil {
			return err
		}
		*x.to = native.Tensor{Data: data, Stride: h.stride}
	}
	args.LSE, args.Mass, args.GradBias = lse.Data, mass.Data, gradBias.Data
	args.ScaleQ, args.ScaleK, args.ScaleV = scaleQ.Data, scaleK.Data, scaleV.Data
	return o.bias(op, outputs, given.Bias, &args.Bias, address)
}

// check makes sure that the operand has these extents, and lies within its memory.
func (h *heads) check(op, name string, want [4]int, dtype DType) error {
	if h.dtype != dtype {
		return fault(op, ErrBadArgument, "%s is of %v where %v is needed", name, h.dtype, dtype)
	}
	if h.extents != want {
		return fault(op, ErrBadSize, "%s is %v where %v is needed (batch, heads, rows, size)", name, h.extents, want)
	}
	if h.offset < 0 {
		return fault(op, ErrBadSize, "%s has an Offset of %d", name, h.offset)
	}
	stride := h.stride
	if stride == [3]int{} {
		stride = [3]int{want[1] * want[2] * want[3], want[2] * want[3], want[3]}
	}
	last := want[3]
	for i, s := range stride {
		if s < 0 {
			return fault(op, ErrBadLeadingDimension, "%s has a Stride of %v", name, h.stride)
		}
		if want[i] == 0 {
			return nil // nothing
		}
		last += (want[i] - 1) * s
	}
	if h.elements < last {
		return fault(op, ErrBadSize, "%s has %d elements of memory and needs %d", name, h.elements, last)
	}
	return nil
}

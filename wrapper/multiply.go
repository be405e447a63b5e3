// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"unsafe"
)

// MultiplyOption changes how a product is run.
type MultiplyOption func(*multiplySettings)

type multiplySettings struct {
	stream  *Stream
	bias    AnyDense
	hasBias bool
}

// WithStream runs the product in s, behind what is there already. Without it each product has a stream to itself.
func WithStream(s *Stream) MultiplyOption {
	return func(settings *multiplySettings) { settings.stream = s }
}

// Multiply computes C = alpha A B + beta C and returns when C is written. B is K x N, C is M x N, with the strides and
// of the type of the plan. With beta = 0, C is not read. Where the plan has a bias ([WithBias] gives it) it is added,
// and where it has an activation C goes through it: C = act(alpha A B + beta C + bias), all in float32, rounded once.
//
// Nothing is copied where B and C are in the back-end's memory: any [Dense] on the CPU, a [DeviceDense] on a GPU. A
// [Dense] on a GPU is staged: device memory is allocated for it, and it is copied there and, for C, back; what lies
// between its rows is left alone.
//
// ctx is looked at before the launch. On a GPU it is then looked at until the product is done: where it ends first,
// Multiply returns ctx.Err() at once; a C in host memory is then as it was, one in device memory may still be written.
// The buffers, the matrix and the plan stay in use until the device is done: Close waits for that, and so does
// SetValues. On the CPU a product that has begun is finished. Where SetValues is at work, Multiply waits for it, or for
// the end of ctx.
func (p *Plan[T]) Multiply(ctx context.Context, alpha float32, b Operand[T], beta float32, c AnyDense, opts ...MultiplyOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	const op = "multiply"
	hereB, hereC, err := operands(op, b, c)
	if err != nil {
		return err
	}
	release, err := useValues(ctx, p)
	if err != nil {
		return err
	}
	r, err := p.newRun(op, opts)
	if err != nil {
		release()
		return err
	}
	r.releaseValues = release
	err = r.multiply(ctx, alpha, hereB, beta, hereC)
	runtime.KeepAlive(b) // until its buffer is in use
	runtime.KeepAlive(c)
	if r.inFlight {
		go r.drain()
	} else {
		r.end()
	}
	return err
}

// run is one call on a plan: what it has in use until the device is done with it.
type run[T Element] struct {
	plan   *Plan[T]
	op     string
	stream unsafe.Pointer
	pooled bool // the stream is the pool's
	use    lease
	bias   operand // where the plan has one
	staged []*handle
	pins   runtime.Pinner // host memory that a copy may still read

	releaseValues func() // nil: the caller of newRun does it

	inFlight bool // given up on: the device is still at it, and needs what it was given
}

// newRun takes the plan and a stream into use; the values of its matrix are in use already, by useValues. It must be
// ended, by end or drain.
func (p *Plan[T]) newRun(op string, opts []MultiplyOption) (*run[T], error) {
	var settings multiplySettings
	for _, opt := range opts {
		opt(&settings)
	}
	r := &run[T]{plan: p, op: op}
	if err := r.use.add(p.handle); err != nil {
		return nil, err
	}
	if err := r.begin(settings.stream); err != nil {
		r.use.release()
		return nil, err
	}
	if err := r.takeBias(settings); err != nil {
		r.end()
		return nil, err
	}
	runtime.KeepAlive(settings.bias) // until its buffer is in use
	return r, nil
}

func (r *run[T]) begin(stream *Stream) error {
	if values := r.plan.matrix.values.buffer; values != nil {
		if err := r.use.add(values.handle); err != nil {
			return err
		}
	}
	ctx := r.plan.matrix.ctx
	if stream == nil {
		pooled, err := ctx.pool.get()
		r.stream, r.pooled = pooled, err == nil
		return err
	}
	if stream.ctx != ctx {
		return fault(r.op, ErrBadArgument, "the stream is of another context than the matrix")
	}
	if err := r.use.add(stream.handle); err != nil {
		return err
	}
	r.stream = stream.handle.pointer
	return nil
}

// end gives back everything. The stream must have come past all work of the run.
func (r *run[T]) end() {
	for _, buffer := range r.staged {
		buffer.close()
	}
	r.pins.Unpin()
	if r.pooled {
		r.plan.matrix.ctx.pool.put(r.stream)
	}
	if r.releaseValues != nil {
		r.releaseValues()
	}
	r.use.release()
}

func (r *run[T]) drain() {
	ctx := r.plan.matrix.ctx
	// An error here is one of the device, which the next call on it reports.
	_ = ctx.lib.streamSynchronize(ctx.handle.pointer, r.stream)
	r.end()
}

// check makes sure that B and C are what was planned for, and takes their buffers into use.
func (r *run[T]) check(b, c operand) error {
	p := r.plan
	if err := b.check(r.op, "B", p.matrix.cols, p.n, p.ldb); err != nil {
		return err
	}
	if err := c.check(r.op, "C", p.matrix.rows, p.n, p.ldc); err != nil {
		return err
	}
	if err := r.checkOutput("C", c); err != nil {
		return err
	}
	if err := r.takeBuffer(b); err != nil {
		return err
	}
	return r.takeBuffer(c)
}

// checkOutput makes sure that C or the bias is of the type that was planned for.
func (r *run[T]) checkOutput(name string, o operand) error {
	if o.dtype != r.plan.output {
		return fault(r.op, ErrBadArgument, "%s is of %v where the plan gives %v: set PlanOptions.Output", name, o.dtype, r.plan.output)
	}
	return nil
}

// takeBuffer takes an operand's buffer, if it is in one, into use.
func (r *run[T]) takeBuffer(o operand) error {
	if o.buffer == nil {
		return nil
	}
	if o.ctx != r.plan.matrix.ctx {
		return fault(r.op, ErrBadArgument, "a buffer is of another context than the matrix")
	}
	return r.use.add(o.buffer)
}

// multiply enqueues all and waits for it, or sets inFlight.
func (r *run[T]) multiply(ctx context.Context, alpha float32, b operand, beta float32, c operand) error {
	if err := r.check(b, c); err != nil {
		return err
	}
	onDevice := r.plan.matrix.ctx.info.Backend == CUDA
	result := c
	if onDevice {
		var err error
		if b, err = r.stage(b, true); err != nil {
			return r.settle(err)
		}
		if c, err = r.stage(c, beta != 0); err != nil {
			return r.settle(err)
		}
	}
	if err := r.stageBias(); err != nil {
		return r.settle(err)
	}
	native := r.plan.matrix.ctx
	if err := r.launch(alpha, b, beta, c); err != nil {
		return r.settle(err)
	}
	if !onDevice {
		return nil
	}
	if err := native.waitStream(ctx, r.stream); err != nil {
		r.inFlight = ctx.Err() != nil
		return err
	}
	if result.buffer == nil {
		return r.fetch(result, c)
	}
	return nil
}

// launch enqueues the product of operands that are where the back-end reads them.
func (r *run[T]) launch(alpha float32, b operand, beta float32, c operand) error {
	return r.plan.matrix.ctx.lib.multiply(r.plan.handle.pointer, alpha, beta,
		rawOperand{b.address(), b.stride}, rawOperand{c.address(), c.stride}, r.bias.address(), r.stream)
}

// settle waits for what was enqueued before err.
func (r *run[T]) settle(err error) error {
	ctx := r.plan.matrix.ctx
	_ = ctx.lib.streamSynchronize(ctx.handle.pointer, r.stream)
	return err
}

// stage gives o in device memory: o itself where it is there, else a new buffer, with o's elements if they are read.
func (r *run[T]) stage(o operand, read bool) (operand, error) {
	if o.buffer != nil {
		return o, nil
	}
	ctx := r.plan.matrix.ctx
	buffer, err := ctx.newMemory(o.bytes())
	if err != nil {
		return o, err
	}
	r.staged = append(r.staged, buffer)
	if read && o.bytes() > 0 {
		r.pins.Pin(o.host)
		if err := ctx.lib.bufferWrite(ctx.handle.pointer, buffer.pointer, o.host, o.bytes(), r.stream); err != nil {
			return o, err
		}
	}
	o.host, o.buffer, o.ctx = nil, buffer, ctx
	return o, nil
}

// fetch copies a staged C back. Rows with gaps between them come by way of another slice, so that what others write
// in the gaps meanwhile is not lost.
func (r *run[T]) fetch(host, staged operand) error {
	ctx := r.plan.matrix.ctx
	direct := host.stride == host.cols
	target := host.address()
	if !direct {
		target = addressOf(make([]byte, host.bytes()))
	}
	err := ctx.lib.bufferRead(ctx.handle.pointer, target, staged.buffer.pointer, host.bytes(), r.stream)
	if err := r.settle(err); err != nil {
		return err
	}
	if !direct && host.span() > 0 {
		size := host.dtype.size()
		for row := range host.rows {
			at := row * host.stride * size
			copy(unsafe.Slice((*byte)(unsafe.Add(host.host, at)), host.cols*size),
				unsafe.Slice((*byte)(unsafe.Add(target, at)), host.cols*size))
		}
	}
	return nil
}

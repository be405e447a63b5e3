// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Multiply computes C = act(alpha A B + beta C + bias) and returns when C is written. The dense matrices have the
// strides and types of the plan; bias and activation are those that it was made for. All is computed in float32 and
// rounded once. With beta = 0, C is not read.
//
// Nothing is copied where the operands are in the back-end's memory: any [Dense] on the CPU, a [DeviceDense] on a GPU. A
// [Dense] on a GPU is staged: device memory is allocated for it, and it is copied there and, for C, back; what lies
// between its rows is left alone.
//
// ctx is looked at before the launch. On a GPU it is then looked at until the product is done: where it ends first,
// Multiply returns ctx.Err() at once; a C in host memory is then as it was, one in device memory may still be written.
// The buffers, the matrix and the plan stay in use until the device is done: Close waits for that, and so does
// [SetValues]. On the CPU a product that has begun is finished. Where SetValues is at work, Multiply waits for it, or for
// the end of ctx.
//
// The product runs in a stream of its own. To order it with other work, see [Plan.Enqueue].
func (p *Plan) Multiply(ctx context.Context, alpha, beta float32, o Operands) error {
	const op = "multiply"
	r, err := p.newRun(ctx, op, nil)
	if err != nil {
		return err
	}
	err = r.multiply(ctx, alpha, beta, o)
	if r.inFlight {
		go r.drain()
	} else {
		r.end()
	}
	return err
}

// Enqueue is [Plan.Multiply] behind what is in stream s already, and without waiting for it: the device may be at work
// when it returns. Operands must be in the back-end's memory; on the CPU the product is done on return. What it uses
// stays in use until the stream has been waited for ([Stream]).
//
// ctx is looked at before the launch; where [SetValues] is at work, Enqueue waits for it, or for the end of ctx.
func (p *Plan) Enqueue(ctx context.Context, s *Stream, alpha, beta float32, o Operands) error {
	const op = "enqueue product"
	if err := s.made(op); err != nil {
		return err
	}
	r, err := p.newRun(ctx, op, s)
	if err != nil {
		return err
	}
	b, c, err := r.bind(o)
	if err != nil {
		r.end()
		return err
	}
	err = r.launch(alpha, b, beta, c)
	// Also after an error: some of the product may have been enqueued.
	s.queue.hold(&r.use, p.matrix.values, nil)
	return err
}

// run is one call on a plan: what it has in use until the device is done with it.
type run struct {
	plan   *Plan
	op     string
	stream uintptr
	pooled bool // the stream is the pool's
	use    lease
	bias   operand // where the plan has one
	staged []*handle
	pins   runtime.Pinner // host memory that a copy may still read

	ownsValues bool // the values of the plan's matrix were taken into use by the run

	inFlight bool // given up on: the device is still at it, and needs what it was given

	room [6]*handle // for use, so that it takes no memory of its own
}

// newRun takes the plan, the values of its matrix and a stream into use: s, or one of the pool's. It waits for whoever
// changes the values, or for the end of ctx. The run must be ended, by end or drain.
func (p *Plan) newRun(ctx context.Context, op string, s *Stream) (*run, error) {
	if err := p.made(op); err != nil {
		return nil, err
	}
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	values := p.matrix.values
	if err := values.use.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	r, err := p.newRunOfValues(op, s)
	if err != nil {
		values.use.Release(1)
		return nil, err
	}
	r.ownsValues = true
	return r, nil
}

// newRunOfValues is newRun where the values are in use already.
func (p *Plan) newRunOfValues(op string, s *Stream) (*run, error) {
	r := &run{plan: p, op: op}
	r.use.handles = r.room[:0]
	if err := r.begin(s); err != nil {
		r.use.release()
		return nil, err
	}
	return r, nil
}

func (r *run) begin(s *Stream) error {
	if err := r.use.add(r.plan.handle); err != nil {
		return err
	}
	if values := r.plan.matrix.values.buffer; values != nil {
		if err := r.use.add(values); err != nil {
			return err
		}
	}
	engine := r.plan.matrix.engine
	if s == nil {
		pooled, err := engine.pool.get()
		r.stream, r.pooled = pooled, err == nil
		return err
	}
	if s.engine != engine {
		return fault(r.op, ErrBadArgument, "the stream is of another engine than the plan")
	}
	if err := r.use.add(s.handle); err != nil {
		return err
	}
	r.stream = s.queue.stream
	return nil
}

// end gives back everything. The stream must have come past all work of the run.
func (r *run) end() {
	for _, buffer := range r.staged {
		buffer.close()
	}
	r.pins.Unpin()
	if r.pooled {
		r.plan.matrix.engine.pool.put(r.stream)
	}
	if r.ownsValues {
		r.plan.matrix.values.use.Release(1)
	}
	r.use.release()
}

func (r *run) drain() {
	_ = r.settle(nil) // an error here is one of the device, which the next call on it reports
	r.end()
}

// check makes sure that the operands are what was planned for, and takes their buffers into use.
func (r *run) check(o Operands) (b, c operand, err error) {
	p := r.plan
	if b, err = operandOf(r.op, "B", o.B); err != nil {
		return b, c, err
	}
	if c, err = operandOf(r.op, "C", o.C); err != nil {
		return b, c, err
	}
	if b.dtype != p.matrix.dtype {
		return b, c, fault(r.op, ErrBadArgument, "B is of %v and the matrix of %v", b.dtype, p.matrix.dtype)
	}
	if err := b.check(r.op, "B", p.matrix.cols, p.n, p.ldb); err != nil {
		return b, c, err
	}
	if err := c.check(r.op, "C", p.matrix.rows, p.n, p.ldc); err != nil {
		return b, c, err
	}
	if err := r.checkOutput("C", c); err != nil {
		return b, c, err
	}
	for _, x := range [...]operand{b, c} {
		if err := r.takeBuffer(x); err != nil {
			return b, c, err
		}
	}
	if err := r.takeBias(o.Bias); err != nil {
		return b, c, err
	}
	runtime.KeepAlive(o) // until the buffers are in use
	if c.overlaps(b) {
		return b, c, fault(r.op, ErrBadArgument, "C overlaps B: the product needs memory of its own")
	}
	if p.bias != NoBias && c.overlaps(r.bias) {
		return b, c, fault(r.op, ErrBadArgument, "C overlaps the bias: the product needs memory of its own")
	}
	return b, c, nil
}

// takeBias makes sure that the bias is what was planned for, and takes its buffer into use.
func (r *run) takeBias(bias Operand) error {
	p := r.plan
	if p.bias == NoBias {
		if bias != nil {
			return fault(r.op, ErrBadArgument, "a bias is given to a plan without one: set PlanOptions.Bias")
		}
		return nil
	}
	if missing(bias) {
		return fault(r.op, ErrNullPointer, "the plan is for a %v bias: set Operands.Bias", p.bias)
	}
	r.bias = bias.operand()
	if err := r.bias.checkBias(r.op, p.bias, p.matrix.rows, p.n); err != nil {
		return err
	}
	if err := r.checkOutput("the bias", r.bias); err != nil {
		return err
	}
	return r.takeBuffer(r.bias)
}

// checkOutput makes sure that C or the bias is of the type that was planned for.
func (r *run) checkOutput(name string, o operand) error {
	if o.dtype != r.plan.output {
		return fault(r.op, ErrBadArgument, "%s is of %v where the plan gives %v: set PlanOptions.Output", name, o.dtype, r.plan.output)
	}
	return nil
}

// takeBuffer takes an operand's buffer, if it is in one, into use.
func (r *run) takeBuffer(o operand) error {
	if o.buffer == nil {
		return nil
	}
	if o.engine != r.plan.matrix.engine {
		return fault(r.op, ErrBadArgument, "a buffer is of another engine than the plan")
	}
	return r.use.add(o.buffer)
}

// bind is check for operands that must be where the back-end reads them.
func (r *run) bind(o Operands) (b, c operand, err error) {
	if b, c, err = r.check(o); err != nil || r.plan.matrix.engine.info.Backend == CPU {
		return b, c, err
	}
	for i, x := range [...]operand{b, c, r.bias} {
		if x.host != nil {
			name := [...]string{"B", "C", "the bias"}[i]
			return b, c, fault(r.op, ErrWrongMemory, "%s is in host memory, which only Multiply copies: use a DeviceDense", name)
		}
	}
	return b, c, nil
}

// multiply enqueues all and waits for it, or sets inFlight.
func (r *run) multiply(ctx context.Context, alpha, beta float32, o Operands) error {
	b, c, err := r.check(o)
	if err != nil {
		return err
	}
	engine := r.plan.matrix.engine
	if engine.info.Backend == CPU {
		return r.launch(alpha, b, beta, c)
	}
	result := c
	if b, err = r.stage(b, true); err != nil {
		return r.settle(err)
	}
	if c, err = r.stage(c, beta != 0); err != nil {
		return r.settle(err)
	}
	if r.plan.bias != NoBias {
		if r.bias, err = r.stage(r.bias, true); err != nil {
			return r.settle(err)
		}
	}
	if err := r.launch(alpha, b, beta, c); err != nil {
		return r.settle(err)
	}
	if err := waitStream(ctx, engine.lib.native, engine.handle.pointer, r.stream); err != nil {
		r.inFlight = ctx.Err() != nil
		return err
	}
	if result.buffer == nil {
		return r.fetch(result, c)
	}
	return nil
}

// launch enqueues the product of operands that are where the back-end reads them.
func (r *run) launch(alpha float32, b operand, beta float32, c operand) error {
	return r.plan.matrix.engine.lib.native.Multiply(r.plan.handle.pointer, alpha, beta,
		native.Operand{Data: b.address(), Stride: b.stride}, native.Operand{Data: c.address(), Stride: c.stride}, r.bias.address(), r.stream)
}

// settle waits for what was enqueued before err.
func (r *run) settle(err error) error {
	engine := r.plan.matrix.engine
	_ = engine.lib.native.StreamSynchronize(engine.handle.pointer, r.stream)
	return err
}

// stage gives o in device memory: o itself where it is there, else a new buffer, with o's elements if they are read.
func (r *run) stage(o operand, read bool) (operand, error) {
	if o.buffer != nil {
		return o, nil
	}
	engine := r.plan.matrix.engine
	buffer, err := engine.newMemory(o.bytes())
	if err != nil {
		return o, err
	}
	r.staged = append(r.staged, buffer)
	if read && o.bytes() > 0 {
		r.pins.Pin(o.host)
		if err := engine.lib.native.BufferWrite(engine.handle.pointer, buffer.pointer, o.host, o.bytes(), r.stream); err != nil {
			return o, err
		}
	}
	o.host, o.buffer, o.engine = nil, buffer, engine
	return o, nil
}

// fetch copies a staged C back. Rows with gaps between them come by way of another slice, so that what others write
// in the gaps meanwhile is not lost.
func (r *run) fetch(host, staged operand) error {
	engine := r.plan.matrix.engine
	direct := host.stride == host.cols
	target := host.address()
	if !direct {
		target = addressOf(make([]byte, host.bytes()))
	}
	err := engine.lib.native.BufferRead(engine.handle.pointer, target, staged.buffer.pointer, host.bytes(), r.stream)
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

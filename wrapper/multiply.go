// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Multiply computes C = act(alpha A B + beta C + bias), or the plan's other product ([Op]), and returns when C is written. The dense matrices have the types
// of the plan, and up to as many columns; bias and activation are those that it was made for. All is computed in float32
// and rounded once. With beta = 0, C is not read. See [Operands] for what else a product may be given.
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
	if err := p.made(op); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	r := &run{plan: p, op: op}
	if err := r.start(ctx, nil); err != nil {
		return err
	}
	err := r.multiply(ctx, alpha, beta, o)
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
	if err := p.made(op); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	r := run{plan: p, op: op} // on the stack: nothing keeps it
	if done, err := r.enqueueAgain(s, alpha, beta, o); done {
		return err
	}
	if err := r.start(ctx, s); err != nil {
		return err
	}
	if err := r.bind(o); err != nil {
		r.end()
		return err
	}
	err := r.launch(alpha, beta)
	// Also after an error: some of the product may have been enqueued.
	s.queue.hold(&r.use, p.matrix.values, nil)
	return err
}

// enqueueAgain enqueues the product where the stream uses all of it already, and nobody waits for the end of that. Then
// there is nothing to take into use, and the call costs half.
func (r *run) enqueueAgain(s *Stream, alpha, beta float32, o Operands) (done bool, err error) {
	q, m := s.queue, r.plan.matrix
	if !q.onGPU || s.engine != m.engine {
		return false, nil
	}
	if err := r.match(o); err != nil {
		return true, err
	}
	q.mu.Lock() // so that none of it is released before the product is in the stream
	defer q.mu.Unlock()
	if _, held := q.held.values[m.values]; !held || m.values.writers.Load() > 0 {
		return false, nil
	}
	for _, h := range [...]*handle{s.handle, r.plan.handle, m.values.buffer} {
		if !q.holds(h) {
			return false, nil
		}
	}
	for _, x := range r.all() {
		if !q.holds(x.buffer) {
			return false, nil
		}
	}
	if err := r.inPlace(); err != nil {
		return true, err
	}
	if err := r.apart(); err != nil {
		return true, err
	}
	r.stream = q.stream
	return true, r.launch(alpha, beta)
}

// run is one call on a plan: what it has in use until the device is done with it.
type run struct {
	plan   *Plan
	op     string
	stream uintptr
	pooled bool // the stream is the pool's
	use    lease
	boundOperands
	staged []*handle
	pins   runtime.Pinner // host memory that a copy may still read

	ownsValues bool // the values of the plan's matrix were taken into use by the run

	inFlight bool // given up on: the device is still at it, and needs what it was given
}

// start takes the plan, the values of its matrix and a stream into use: s, or one of the pool's. It waits for whoever
// changes the values, or for the end of ctx. The run must be ended, by end or drain.
func (r *run) start(ctx context.Context, s *Stream) error {
	values := r.plan.matrix.values
	if !values.use.TryAcquire(1) {
		if err := values.use.Acquire(ctx, 1); err != nil {
			return err
		}
	}
	if err := r.begin(s); err != nil {
		values.use.Release(1)
		return err
	}
	r.ownsValues = true
	return nil
}

// begin is start where the values are in use already.
func (r *run) begin(s *Stream) error {
	err := r.takeStream(s)
	if err != nil {
		r.use.release()
	}
	return err
}

// takeStream takes the plan, the buffer of its matrix's values and the stream into use.
func (r *run) takeStream(s *Stream) error {
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

// multiply enqueues all and waits for it, or sets inFlight.
func (r *run) multiply(ctx context.Context, alpha, beta float32, o Operands) error {
	if err := r.check(o); err != nil {
		return err
	}
	engine := r.plan.matrix.engine
	if engine.info.Backend == CPU {
		return r.launch(alpha, beta)
	}
	result := r.c
	if err := r.stage(&r.b, true); err != nil {
		return r.settle(err)
	}
	readsInput := beta != 0 && r.input.given
	if !readsInput {
		r.input = operand{}
	}
	if err := r.stage(&r.c, beta != 0 && !readsInput); err != nil {
		return r.settle(err)
	}
	for _, x := range [...]*operand{&r.bias, &r.x, &r.values, &r.input, &r.alphaScale, &r.betaScale} {
		if !x.given {
			continue
		}
		if err := r.stage(x, true); err != nil {
			return r.settle(err)
		}
	}
	if err := r.launch(alpha, beta); err != nil {
		return r.settle(err)
	}
	if err := waitStream(ctx, engine.lib.native, engine.handle.pointer, r.stream); err != nil {
		r.inFlight = ctx.Err() != nil
		return err
	}
	if result.buffer == nil {
		return r.fetch(result)
	}
	return nil
}

// launch enqueues the product of operands that are where the back-end reads them.
func (r *run) launch(alpha, beta float32) error {
	m := r.plan.matrix
	c, input := r.c.native(), r.input.native()
	c.Stride, input.Stride = r.plan.strideC(c.Stride), r.plan.strideC(input.Stride)
	if r.input.given && r.inputIsOneRow() {
		input.Stride = native.OneRow
	}
	biasRows := 1
	if r.plan.bias == RowBias {
		biasRows = r.wantC.rows
	}
	stepC := r.wantC.rows * r.c.stride
	if r.c.order == ColumnMajor {
		stepC = r.wantC.rows
	}
	engine, p := m.engine, native.Product{
		Alpha: alpha, Beta: beta, N: r.n, X: r.x.native(), B: r.b.native(), C: c, Input: input,
		Bias: r.bias.address(), Values: r.values.address(), AlphaScale: r.alphaScale.address(), BetaScale: r.betaScale.address(),
		Stream: r.stream, Workspace: r.workspace.address(), WorkspaceBytes: r.workspace.bytes(), Batch: r.batch,
		StepX: r.step(&r.x, r.wantX.rows), StepB: r.step(&r.b, r.wantB.rows), StepC: stepC,
		StepValues: r.step(&r.values, m.blocks*m.blockM), StepBias: r.step(&r.bias, biasRows)}
	if data := r.plan.data; data != nil {
		var workspace unsafe.Pointer
		if data.workspace != nil {
			workspace = data.workspace.pointer
		}
		return engine.lib.native.PlanRun(engine.handle.pointer, data.layout, data.memory.pointer, workspace, p)
	}
	return engine.lib.native.Multiply(r.plan.handle.pointer, p)
}

// settle waits for what was enqueued before err.
func (r *run) settle(err error) error {
	engine := r.plan.matrix.engine
	_ = engine.lib.native.StreamSynchronize(engine.handle.pointer, r.stream)
	return err
}

// stage moves o to device memory where it is not there: to a new buffer, with o's elements if they are read.
func (r *run) stage(o *operand, read bool) error {
	if o.buffer != nil {
		return nil
	}
	engine := r.plan.matrix.engine
	buffer, err := engine.newMemory(o.bytes())
	if err != nil {
		return err
	}
	r.staged = append(r.staged, buffer)
	if read && o.bytes() > 0 {
		r.pins.Pin(o.host)
		if err := engine.lib.native.BufferWrite(engine.handle.pointer, buffer.pointer, o.host, o.bytes(), r.stream); err != nil {
			return err
		}
	}
	o.host, o.buffer, o.engine = nil, buffer, engine
	return nil
}

// fetch copies a staged C back. Rows with gaps between them come by way of another slice, so that what others write
// in the gaps meanwhile is not lost.
func (r *run) fetch(host operand) error {
	engine := r.plan.matrix.engine
	count, length := host.lines()
	direct := host.stride == length
	target := host.address()
	if !direct {
		target = addressOf(make([]byte, host.bytes()))
	}
	err := engine.lib.native.BufferRead(engine.handle.pointer, target, r.c.buffer.pointer, host.bytes(), r.stream)
	if err := r.settle(err); err != nil {
		return err
	}
	if !direct && host.span() > 0 {
		size := host.dtype.size()
		for line := range count {
			at := line * host.stride * size
			copy(unsafe.Slice((*byte)(unsafe.Add(host.host, at)), length*size),
				unsafe.Slice((*byte)(unsafe.Add(target, at)), length*size))
		}
	}
	return nil
}

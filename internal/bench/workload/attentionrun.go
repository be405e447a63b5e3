// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// attentionOperands are Q, K, V and the gradient of O.
const attentionOperands = 4

// AttentionRun is attention with its operands in the back-end's memory. O is the type of O: T, but of Float8E4M3, which gets
// scales too, BFloat16 or Float16. S is the type of LSE: float64 where T is, else float32.
type AttentionRun[T, O, S sparsek.Element] struct {
	Attention
	engine    *sparsek.Engine
	attention *sparsek.Attention
	stream    *sparsek.Stream
	layout    *sparsek.BSR[T, int32]
	host      []T              // random
	scales    *attentionScales // nil: none
	backward  bool
	sets      []attentionSet[T, O, S] // with the same Q, K, V and gradient of O
	ran       bool
}

type attentionSet[T, O, S sparsek.Element] struct {
	q, k, v, gradO, gradQ, gradK, gradV *sparsek.DeviceBuffer[T]
	o                                   *sparsek.DeviceBuffer[O]
	lse                                 *sparsek.DeviceBuffer[S]
}

// NewAttentionRun makes attention, by a kernel of that name where it is not "", and its operands out of RandomElements
// random numbers, which it keeps; those of the backward pass too, where that is asked for. On a GPU there are so many
// sets of operands that L2 holds none of the last call but one.
func NewAttentionRun[T, O, S sparsek.Element](ctx context.Context, engine *sparsek.Engine, a Attention, kernel string, backward bool, host []T) (*AttentionRun[T, O, S], error) {
	r := &AttentionRun[T, O, S]{Attention: a, engine: engine, host: host, backward: backward}
	err := r.make(ctx, kernel)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *AttentionRun[T, O, S]) make(ctx context.Context, kernel string) (err error) {
	if r.layout, err = layoutOf[T](r.Attention); err != nil {
		return err
	}
	options := r.options()
	options.Kernel = kernel
	if r.attention, err = sparsek.NewAttention(ctx, r.engine, r.layout, options); err != nil {
		return err
	}
	if r.backward && r.Info().Backward == "" {
		return &sparsek.Error{Status: sparsek.ErrNoSuchKernel, Op: "create attention",
			Msg: "kernel " + r.Info().Kernel + " has no backward pass: compute it on the CPU, of e4m3 in another type"}
	}
	if r.stream, err = r.engine.NewStream(); err != nil {
		return err
	}
	if sparsek.DTypeOf[T]() == sparsek.E4M3 {
		if r.scales, err = newAttentionScales(ctx, r.engine, r.Attention); err != nil {
			return err
		}
	}
	count, err := r.copies()
	for range count {
		if err != nil {
			return err
		}
		r.sets = append(r.sets, attentionSet[T, O, S]{})
		err = r.fill(ctx, &r.sets[len(r.sets)-1])
	}
	return err
}

// options are the library's, with the type of O.
func (r *AttentionRun[T, O, S]) options() sparsek.AttentionOptions {
	o := r.Options()
	o.Output = sparsek.DTypeOf[O]()
	return o
}

// copies is how many sets of operands there are.
func (r *AttentionRun[T, O, S]) copies() (int, error) {
	if r.engine.Info().Backend != sparsek.CUDA {
		return 1, nil
	}
	devices, err := r.engine.Library().Devices()
	if err != nil {
		return 0, err
	}
	bytes := int64(r.Bytes(sizeOf[T](), r.backward))
	return int(min(mostCopies, 1+2*devices[r.engine.Info().Device].L2Bytes/max(1, bytes))), nil
}

func (r *AttentionRun[T, O, S]) fill(ctx context.Context, s *attentionSet[T, O, S]) error {
	var all error
	upload := func(to **sparsek.DeviceBuffer[T], from []T) {
		if all == nil {
			*to, all = Upload(ctx, r.engine, from)
		}
	}
	room := func(to **sparsek.DeviceBuffer[T], elements int) {
		if all == nil {
			*to, all = sparsek.NewBuffer[T](r.engine, elements)
		}
	}
	upload(&s.q, r.hostQ())
	upload(&s.k, r.hostK())
	upload(&s.v, r.hostV())
	if r.backward {
		upload(&s.gradO, r.hostGradO())
		room(&s.gradQ, r.queries())
		room(&s.gradK, r.keys())
		room(&s.gradV, r.keys())
	}
	if all == nil {
		s.o, all = sparsek.NewBuffer[O](r.engine, r.queries())
	}
	if all == nil {
		s.lse, all = sparsek.NewBuffer[S](r.engine, r.queries()/r.HeadSize)
	}
	return all
}

// What the operands hold.
func (r *AttentionRun[T, O, S]) hostQ() []T     { return r.host[:r.queries()] }
func (r *AttentionRun[T, O, S]) hostK() []T     { return r.host[stagger:][:r.keys()] }
func (r *AttentionRun[T, O, S]) hostV() []T     { return r.host[2*stagger:][:r.keys()] }
func (r *AttentionRun[T, O, S]) hostGradO() []T { return r.host[3*stagger:][:r.queries()] }

// operands are those of the sets.
func (r *AttentionRun[T, O, S]) operands() []sparsek.AttentionOperands {
	heads := func(count int, buffer *sparsek.DeviceBuffer[T]) sparsek.Heads[T] {
		return sparsek.Heads[T]{Batch: r.Batch, Heads: count, Rows: r.Seq, Size: r.HeadSize, Buffer: buffer}
	}
	var list []sparsek.AttentionOperands
	for _, s := range r.sets {
		o := sparsek.AttentionOperands{Q: heads(r.HeadsQ, s.q), K: heads(r.HeadsK, s.k), V: heads(r.HeadsK, s.v),
			O:   sparsek.Heads[O]{Batch: r.Batch, Heads: r.HeadsQ, Rows: r.Seq, Size: r.HeadSize, Buffer: s.o},
			LSE: sparsek.Heads[S]{Batch: r.Batch, Heads: r.HeadsQ, Rows: r.Seq, Size: 1, Buffer: s.lse}}
		r.scales.give(r.Attention, &o)
		if r.backward {
			o.GradO, o.GradQ = heads(r.HeadsQ, s.gradO), heads(r.HeadsQ, s.gradQ)
			o.GradK, o.GradV = heads(r.HeadsK, s.gradK), heads(r.HeadsK, s.gradV)
		}
		list = append(list, o)
	}
	return list
}

// Info says how it is computed.
func (r *AttentionRun[T, O, S]) Info() sparsek.AttentionInfo { return r.attention.Info() }

// Compute runs a forward pass and, where that was asked for, a backward pass with each set of operands. The outputs begin as
// NaNs, so that nothing unwritten passes for a result.
func (r *AttentionRun[T, O, S]) Compute(ctx context.Context) error {
	const nan = 0xff // in every byte
	for i, o := range r.operands() {
		s := &r.sets[i]
		for _, out := range []*sparsek.DeviceBuffer[T]{s.gradQ, s.gradK, s.gradV} {
			if out == nil {
				continue
			}
			if err := out.Fill(ctx, nan); err != nil {
				return err
			}
		}
		if err := errors.Join(s.o.Fill(ctx, nan), s.lse.Fill(ctx, nan)); err != nil {
			return err
		}
		if err := r.attention.Forward(ctx, r.stream, o); err != nil {
			return err
		}
		if !r.backward {
			continue
		}
		if err := r.attention.Backward(ctx, r.stream, o); err != nil {
			return err
		}
	}
	r.ran = true
	return r.stream.Wait(ctx)
}

// Time times passes, each behind `between` others that are not timed; see [timing.Attention]. Backward ones need what Compute
// wrote.
func (r *AttentionRun[T, O, S]) Time(ctx context.Context, backward bool, between, repeats int) ([]time.Duration, error) {
	if backward && !r.ran {
		return nil, errors.New("a backward pass needs a forward pass before it")
	}
	return timing.Attention(ctx, r.attention, timing.AttentionOptions{Backward: backward, Operands: r.operands(), Between: between, Repeats: repeats})
}

// Close frees all of it.
func (r *AttentionRun[T, O, S]) Close() error {
	var all []error
	if r.attention != nil {
		all = append(all, r.attention.Close())
	}
	if r.stream != nil {
		all = append(all, r.stream.Close())
	}
	if r.scales != nil {
		all = append(all, r.scales.close())
	}
	for _, s := range r.sets {
		for _, buffer := range []*sparsek.DeviceBuffer[T]{s.q, s.k, s.v, s.gradO, s.gradQ, s.gradK, s.gradV} {
			if buffer != nil {
				all = append(all, buffer.Close())
			}
		}
		if s.o != nil {
			all = append(all, s.o.Close())
		}
		if s.lse != nil {
			all = append(all, s.lse.Close())
		}
	}
	return errors.Join(all...)
}

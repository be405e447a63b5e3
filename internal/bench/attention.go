// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// attentionOf times cases of attention of one element type. O is the type of O, and S that of LSE.
type attentionOf[T, O, S sparsek.Element] struct {
	r       *Runner
	element workload.Element[T]
	host    []T // random, for the largest case
}

// ofAttention gives what times attention of an element type.
func (r *Runner) ofAttention(dtype string) (measurer, error) {
	key := AttentionSuite + " " + dtype // beside products
	if m := r.byType[key]; m != nil {
		return m, nil
	}
	switch dtype {
	case workload.BFloat16.Name:
		r.byType[key] = newAttentionOf[sparsek.BFloat16, sparsek.BFloat16, float32](r, workload.BFloat16)
	case workload.Float16.Name:
		r.byType[key] = newAttentionOf[sparsek.Float16, sparsek.Float16, float32](r, workload.Float16)
	case workload.Float32.Name:
		r.byType[key] = newAttentionOf[float32, float32, float32](r, workload.Float32)
	case workload.Float64.Name:
		r.byType[key] = newAttentionOf[float64, float64, float64](r, workload.Float64)
	case workload.Float8E4M3.Name:
		r.byType[key] = newAttentionOf[sparsek.Float8E4M3, sparsek.BFloat16, float32](r, workload.Float8E4M3)
	default:
		return nil, fmt.Errorf("there is no element type %q", dtype)
	}
	return r.byType[key], nil
}

func newAttentionOf[T, O, S sparsek.Element](r *Runner, e workload.Element[T]) *attentionOf[T, O, S] {
	elements := 0
	for _, c := range r.cases {
		if c.Attention != nil && (c.DType == e.Name || c.DType == workload.Float8E4M3.Name && e.Name == wideType) {
			elements = max(elements, c.Attention.RandomElements())
		}
	}
	return &attentionOf[T, O, S]{r: r, element: e, host: workload.RandomB[T](1, elements, r.cases[0].Seed).Data}
}

func (t *attentionOf[T, O, S]) close() error { return nil }

func (t *attentionOf[T, O, S]) launch(context.Context, Case, int) (*Launched, error) {
	return nil, errors.New("attention is timed, and not launched for profilers")
}

// measure checks and times a case.
func (t *attentionOf[T, O, S]) measure(ctx context.Context, c Case) (out *Result, err error) {
	run, err := workload.NewAttentionRun[T, O, S](ctx, t.r.engine, *c.Attention, "", c.Backward, t.host)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if err := run.Compute(ctx); err != nil {
		return nil, err
	}
	if err := run.CheckSample(ctx); err != nil {
		return nil, err
	}
	ours := t.ours(c, run)
	if err := tryOnce(ctx, &ours, ""); err != nil {
		return nil, err
	}
	peers, err := t.r.enterAttention(ctx, c)
	defer func() {
		for _, e := range peers {
			if e.close != nil {
				err = errors.Join(err, e.close())
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	list := append([]entrant{ours}, peers...)
	if t.r.options.Repeats > 0 {
		for i := range list {
			list[i].repeats = t.r.options.Repeats
		}
	}
	out = t.describe(c, run.Info())
	return out, t.r.timeAll(ctx, out, list, ours.time)
}

// ours is the library's, each timed call behind another one, which keeps the device busy.
func (t *attentionOf[T, O, S]) ours(c Case, run *workload.AttentionRun[T, O, S]) entrant {
	between := 1
	e := entrant{name: Ours, kernel: kernelOf(c, run.Info()),
		run: func(ctx context.Context, count int) (int, error) {
			_, err := run.Time(ctx, c.Backward, count-1, 1)
			return count, err
		}}
	e.time = func(ctx context.Context, repeats int) ([]time.Duration, error) {
		times, err := run.Time(ctx, c.Backward, between, repeats)
		switch {
		case err != nil:
		case t.r.engine.Info().Backend == sparsek.CPU && times[0] > long:
			between = 0
		case t.r.engine.Info().Backend == sparsek.CUDA && times[0] < short:
			between = shortBefore
		}
		return times, err
	}
	return e
}

func kernelOf(c Case, info sparsek.AttentionInfo) string {
	if c.Backward {
		return info.Backward
	}
	return info.Kernel
}

// describe fills in what is known before anything is timed.
func (t *attentionOf[T, O, S]) describe(c Case, info sparsek.AttentionInfo) *Result {
	a := c.Attention
	out := &Result{
		Name: c.Name, M: a.Seq, N: a.HeadSize, K: a.Seq, BlockM: a.BlockQ, BlockK: a.BlockK, DType: c.DType, Seed: c.Seed, Op: "attention",
		Pattern: a.Rules(), Attention: a, Blocks: int(info.Blocks), Density: float64(info.Pairs) / a.AllPairs(), Kernel: kernelOf(c, info),
		EffectiveFLOP: a.FLOP(float64(info.Pairs), c.Backward), DenseFLOP: a.FLOP(a.DensePairs(), c.Backward), Bytes: a.Bytes(t.element.Size, c.Backward),
	}
	if c.Backward {
		out.Op = "attention_backward"
	}
	if chip := t.r.Chip(); chip != nil && t.element.Size == workload.BFloat16.Size {
		out.Bounds = []roofline.Bound{roofline.OfFLOP(*chip, out.EffectiveFLOP, out.Bytes, t.element.Size)}
	}
	return out
}

// attentionBytes are those that the case takes on the host.
func (c Case) attentionBytes(backend sparsek.Backend) float64 {
	size := elementBytes(c.DType)
	index, _ := c.Attention.IndexBytes() // a pattern that cannot be made fails when it is measured
	results := c.Attention.Bytes(size, c.Backward) / 2
	total := float64(size)*float64(c.Attention.RandomElements()) + results + index
	if backend != sparsek.CUDA {
		total += c.Attention.Bytes(size, c.Backward)
	}
	return total
}

// enterAttention gives the peers that compute the case.
func (r *Runner) enterAttention(ctx context.Context, c Case) (list []entrant, err error) {
	if c.DType == workload.Float8E4M3.Name {
		return r.enterWide(ctx, c)
	}
	prepared := false
	for _, name := range r.options.Against {
		e, err := r.heads.enterAttention(ctx, r.engine.Info(), c, name, &prepared)
		absent, failed := missingIn(err)
		for _, m := range absent {
			r.miss(m, c.Name)
		}
		if failed != nil {
			return nil, failed
		}
		if len(absent) == 0 {
			list = append(list, e)
		}
	}
	return list, nil
}

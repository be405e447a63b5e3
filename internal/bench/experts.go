// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// ExpertsMethod says how layers of experts are timed.
const ExpertsMethod = "A layer of experts makes the pattern of counts in device memory, two plans and two products with each step, in a CUDA graph of several " +
	"steps, by the wall clock; torch's is of single layers, of counts that the host has, by CUDA events. Effective TFLOP/s count the operations on rows that tokens have; " +
	"dense-equivalent TFLOP/s those of every expert on every token."

// expertsOf times layers of experts of one element type.
type expertsOf[T sparsek.Element] struct {
	r       *Runner
	element workload.Element[T]
}

// ofExperts gives what times layers of experts of an element type.
func (r *Runner) ofExperts(dtype string) (measurer, error) {
	switch dtype {
	case workload.BFloat16.Name:
		return &expertsOf[sparsek.BFloat16]{r, workload.BFloat16}, nil
	case workload.Float32.Name:
		return &expertsOf[float32]{r, workload.Float32}, nil
	}
	return nil, fmt.Errorf("there are no experts of element type %q", dtype)
}

func (t *expertsOf[T]) close() error { return nil }

func (t *expertsOf[T]) launch(context.Context, Case, int) (*Launched, error) {
	return nil, errors.New("a layer of experts is timed, and not launched for profilers")
}

// measure checks and times a case.
func (t *expertsOf[T]) measure(ctx context.Context, c Case) (out *Result, err error) {
	host := workload.RandomB[T](1, c.Experts.RandomElements(), c.Seed).Data
	run, err := workload.NewExpertsRun(ctx, t.r.engine, *c.Experts, host)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if err := run.Check(ctx); err != nil {
		return nil, err
	}
	ours := entrant{name: Ours, kernel: ofStep, time: run.Time}
	if err := tryOnce(ctx, &ours, ""); err != nil {
		return nil, err
	}
	list := []entrant{ours}
	for _, name := range t.r.options.Against {
		e, err := t.r.enterExperts(ctx, c, name)
		absent, failed := missingIn(err)
		for _, m := range absent {
			t.r.miss(m, c.Name)
		}
		if failed != nil {
			return nil, failed
		}
		if len(absent) == 0 {
			list = append(list, e)
		}
	}
	if t.r.options.Repeats > 0 {
		for i := range list {
			list[i].repeats = t.r.options.Repeats
		}
	}
	out = t.describe(c)
	return out, t.r.timeAll(ctx, out, list, ours.time)
}

// ofStep says what a step of ours has.
const ofStep = "pattern, two plans, SDD and A B"

// describe fills in what is known before anything is timed.
func (t *expertsOf[T]) describe(c Case) *Result {
	e := c.Experts
	blocks := e.Blocks(e.Counts())
	places := float64(e.Rows()/e.Block) * float64(e.Columns()/e.Block)
	out := &Result{
		Name: c.Name, M: c.Shape.M, N: c.Shape.N, K: c.Shape.K, BlockM: e.Block, BlockK: e.Block, DType: c.DType, Seed: c.Seed, Op: "experts",
		Pattern: c.Pattern, Experts: e, Blocks: blocks, Density: float64(blocks) / places, Kernel: ofStep,
		EffectiveFLOP: e.FLOP(), DenseFLOP: e.FLOP() * float64(e.Count), Bytes: e.Bytes(t.element.Size),
	}
	if chip := t.r.Chip(); chip != nil && t.element.Size == workload.BFloat16.Size {
		out.Bounds = []roofline.Bound{roofline.OfFLOP(*chip, out.EffectiveFLOP, out.Bytes, t.element.Size)}
	}
	return out
}

// expertsCase is a case of a layer of experts, of the suite's seed.
func expertsCase(name string, e workload.Experts, dtype string) Case {
	e.Seed = rooflineSeed
	return Case{Name: name, Shape: workload.Shape{M: e.Rows(), N: e.Width, K: e.Columns()}, BlockM: e.Block, BlockK: e.Block, DType: dtype,
		Pattern: fmt.Sprintf("%d experts", e.Count), Experts: &e}
}

// expertsBytes are those that the case takes on the host.
func (c Case) expertsBytes(backend sparsek.Backend) float64 {
	e, size := c.Experts, float64(elementBytes(c.DType))
	results := size * float64(e.Capacity()*e.Block*e.Block+e.Rows()*e.Width)
	total := size*float64(e.RandomElements()) + results
	if backend != sparsek.CUDA {
		total += results + size*float64((e.Rows()+2*e.Columns())*e.Width)
	}
	return total
}

// pythonExperts is what the script reads of a case.
type pythonExperts struct {
	Op     string  `json:"op"`
	DType  string  `json:"dtype"`
	Width  int     `json:"width"`
	Hidden int     `json:"hidden"`
	Counts []int32 `json:"counts"` // rows of each expert
}

// enterExperts gets torch's grouped products ready.
func (r *Runner) enterExperts(ctx context.Context, c Case, name string) (entrant, error) {
	if name != Torch {
		return entrant{}, &missing{name, "it has no layer of experts", "compare with " + Torch}
	}
	t := &r.torch
	if err := t.start(ctx, r.engine.Info()); err != nil {
		return entrant{}, err
	}
	entry, err := t.prepare(ctx, pythonExperts{Op: "experts", DType: c.DType, Width: c.Experts.Width, Hidden: c.Experts.Hidden, Counts: c.Experts.Counts()})
	if err != nil {
		return entrant{}, err
	}
	e := entrant{name: Torch, kernel: fmt.Sprintf("%s %s, %s", Torch, t.version, entry), time: t.time}
	return e, tryOnce(ctx, &e, t.served)
}

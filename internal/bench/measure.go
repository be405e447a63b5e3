// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// typed times the cases of one element type.
type typed[T sparsek.Element] struct {
	r       *Runner
	element workload.Element[T]
	sets    *workload.Sets[T]
	peers   []peer[T]
}

func newTyped[T sparsek.Element](r *Runner, e workload.Element[T]) (measurer, error) {
	var shapes, dense []workload.Shape
	for _, c := range r.cases {
		if c.DType != e.Name {
			continue
		}
		shapes = append(shapes, c.Shape)
		if AnyDense(r.options.Against) && c.denseBytes() <= largestDense {
			dense = append(dense, c.Shape)
		}
	}
	sets, err := workload.NewSets[T](r.context, shapes, dense, r.cases[0].Seed)
	if err != nil {
		return nil, err
	}
	t := &typed[T]{r: r, element: e, sets: sets}
	for _, name := range r.options.Against {
		t.peers = append(t.peers, newPeer[T](name, r))
	}
	return t, nil
}

func (t *typed[T]) close() error { return t.sets.Close() }

// measure checks and times a case.
func (t *typed[T]) measure(ctx context.Context, c Case) (out *Result, err error) {
	a, fill, err := load(c, t.element)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &subject[T]{
		context: t.r.context, element: t.element, shape: c.Shape, a: a, sets: t.sets,
		copies: workload.ColdCopies(t.r.device.L2Bytes, t.element.Size, len(a.Values), c.Shape.M, c.Shape.N, c.Shape.K),
		dense:  c.denseBytes() <= largestDense,
	}
	rotation, err := workload.NewRotation(ctx, t.r.context, a, workload.RotationOptions{N: c.Shape.N, Copies: s.copies})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rotation.Close()) }()
	if err := workload.CheckSample(ctx, t.r.context, a, c.Shape.N, rotation, t.sets); err != nil {
		return nil, err
	}
	entrants, err := t.enter(ctx, c, s, rotation)
	defer func() {
		for _, e := range entrants {
			if e.close != nil {
				err = errors.Join(err, e.close())
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	planTime, err := workload.HostPlanTime(ctx, t.r.context, a, c.Shape.N)
	if err != nil {
		return nil, err
	}
	out = t.describe(c, a, fill, rotation, planTime)
	if err := t.time(ctx, out, entrants, rotation, s); err != nil {
		return nil, err
	}
	return out, nil
}

// enter gives those that take turns, ours first.
func (t *typed[T]) enter(ctx context.Context, c Case, s *subject[T], rotation *workload.Rotation[T]) ([]entrant, error) {
	ours := entrant{name: Ours, kernel: rotation.Info().Kernel, time: timeRotation(s, rotation)}
	first, err := ours.time(ctx, 1)
	if err != nil {
		return nil, err
	}
	ours.repeats = interleave.Repeats(first[0])
	list := []entrant{ours}
	if c.Graph && t.r.context.Info().Backend == sparsek.CUDA {
		list = append(list, t.inGraph(s, rotation))
	}
	for _, p := range t.peers {
		more, err := p.enter(ctx, s)
		list = append(list, more...)
		absent, failed := missingIn(err)
		for _, m := range absent {
			t.r.miss(m, c.Name)
		}
		if failed != nil {
			return list, failed
		}
	}
	if t.r.options.Repeats > 0 {
		for i := range list {
			list[i].repeats = t.r.options.Repeats
		}
	}
	return list, nil
}

const (
	fewestInGraph = 64 // products, so that the start of a graph does not count
	replays       = 4  // of a graph in a round
)

// inGraph is ours without the launch of each product.
func (t *typed[T]) inGraph(s *subject[T], rotation *workload.Rotation[T]) entrant {
	operands := s.sets.Sparse(s.shape)
	products := (fewestInGraph + rotation.Copies() - 1) / rotation.Copies() * rotation.Copies()
	return entrant{name: OursGraph, kernel: rotation.Info().Kernel, products: products, repeats: replays,
		time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
			_, times, err := rotation.TimeGraph(ctx, operands, fewestInGraph, repeats)
			return times, err
		}}
}

// describe fills in what is known before anything is timed.
func (t *typed[T]) describe(c Case, a bsr.Matrix[T], fill *bsr.Fill, rotation *workload.Rotation[T], planTime time.Duration) *Result {
	plan := rotation.Info()
	work := roofline.WorkOf(roofline.Case{M: c.Shape.M, N: c.Shape.N, K: c.Shape.K, BlockM: c.BlockM, BlockK: c.BlockK}, a.Pattern, plan)
	perElement := float64(t.element.Size) / float64(workload.BFloat16.Size) // WorkOf counts bytes of bfloat16
	out := &Result{
		Name: c.Name, M: c.Shape.M, N: c.Shape.N, K: c.Shape.K, BlockM: c.BlockM, BlockK: c.BlockK, DType: c.DType, Seed: c.Seed,
		Pattern: c.Pattern, Blocks: a.Blocks(), Density: a.Density(), FillIn: fillIn(fill),
		Kernel: plan.Kernel, KernelReason: plan.Reason, PlanSeconds: planTime.Seconds(),
		EffectiveFLOP: work.FLOP, DenseFLOP: 2 * float64(c.Shape.M) * float64(c.Shape.N) * float64(c.Shape.K), Bytes: work.DRAM * perElement,
	}
	if c.File != nil {
		out.Matrix = c.File.Path
	}
	if t.r.Chip() != nil && t.element.Size == workload.BFloat16.Size {
		out.Bounds = work.Bounds(*t.r.Chip())
	}
	return out
}

// time runs the rounds.
func (t *typed[T]) time(ctx context.Context, out *Result, entrants []entrant, rotation *workload.Rotation[T], s *subject[T]) error {
	var turns []interleave.Turn
	for _, e := range entrants {
		turns = append(turns, interleave.Turn{Repeats: e.repeats, Time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
			times, err := e.time(ctx, repeats)
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("time %s: %w", e.name, err)
			}
			return times, err
		}})
	}
	out.Before = t.r.look(ctx)
	all, err := interleave.Interleave(ctx, t.r.options.Rounds, workload.Rest(t.r.context), turns)
	if err != nil {
		return err
	}
	work := timeRotation(s, rotation)
	out.After, err = nvsmi.LookWhile(ctx, t.r.look, func(ctx context.Context) error {
		_, err := work(ctx, interleave.MostRepeats)
		return err
	})
	if err != nil {
		return err
	}
	for i, e := range entrants {
		one := newTimed(e.name, e.kernel, e.dense, all[i], out.EffectiveFLOP, out.DenseFLOP)
		one.Products = e.products
		out.Timed = append(out.Timed, one)
	}
	out.compare()
	return nil
}

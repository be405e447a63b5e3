// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// typed times the cases of one element type.
type typed[T sparsek.Element] struct {
	r       *Runner
	element workload.Element[T]
	sets    *workload.Sets[T]
	peers   []namedPeer[T]
}

type namedPeer[T sparsek.Element] struct {
	name string
	peer[T]
}

// enter is the peer's, where it has products of that form.
func (p namedPeer[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	if slices.Contains(attentionPeers, p.name) {
		return nil, &missing{p.name, "it computes attention, and this is a product", "compare it in --suite " + AttentionSuite}
	}
	if s.form.Op != sparsek.DSD && p.name != CUBLAS && p.name != Torch {
		return nil, &missing{p.name, "it is compared in products A B alone", "compare with " + CUBLAS + " or " + Torch}
	}
	return p.peer.enter(ctx, s)
}

func newTyped[T sparsek.Element](ctx context.Context, r *Runner, e workload.Element[T]) (measurer, error) {
	var sizes workload.Sizes
	dense := e.Size == workload.BFloat16.Size && r.engine.Info().Backend == sparsek.CUDA && slices.Contains(r.options.Against, CUBLAS)
	for _, c := range r.cases {
		if c.DType == e.Name && c.Attention == nil && c.Experts == nil {
			sizes = sizes.Larger(c.sizes(dense))
		}
	}
	sets, err := workload.NewSets[T](ctx, r.engine, sizes, r.cases[0].Seed)
	if err != nil {
		return nil, err
	}
	t := &typed[T]{r: r, element: e, sets: sets}
	for _, name := range r.options.Against {
		t.peers = append(t.peers, namedPeer[T]{name, newPeer[T](name, r)})
	}
	return t, nil
}

func (t *typed[T]) close() error { return t.sets.Close() }

// product is a case whose A is in the back-end's memory and whose first product was checked.
type product[T sparsek.Element] struct {
	*subject[T]
	fill     *bsr.Fill
	rotation *workload.Rotation[T]
}

// ready makes A and checks a product of it. The rotation is the caller's to close.
func (t *typed[T]) ready(ctx context.Context, c Case) (*product[T], error) {
	a, fill, err := load(c, t.element)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cold := func(values int) int {
		return workload.ColdCopies(t.r.device.L2Bytes, t.element.Size, values, c.Shape.M, c.Shape.N, c.Shape.K)
	}
	s := &subject[T]{
		engine: t.r.engine, element: t.element, shape: c.Shape, form: c.Form, a: a, sets: t.sets,
		copies: cold(len(a.Values)), denseCopies: cold(c.Shape.M * c.Shape.K), dense: c.denseBytes() <= largestDense,
	}
	rotation, err := workload.NewRotation(ctx, t.r.engine, a, workload.RotationOptions{N: c.Shape.N, Form: c.Form, Copies: s.copies})
	if err != nil {
		return nil, err
	}
	if err := workload.CheckSample(ctx, t.r.engine, a, rotation, t.sets); err != nil {
		return nil, errors.Join(err, rotation.Close())
	}
	return &product[T]{s, fill, rotation}, nil
}

// measure checks and times a case.
func (t *typed[T]) measure(ctx context.Context, c Case) (out *Result, err error) {
	p, err := t.ready(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.rotation.Close()) }()
	entrants, err := t.enter(ctx, c, p)
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
	out = t.describe(c, p)
	if err := t.planTimes(ctx, out, p); err != nil {
		return nil, err
	}
	return out, t.r.timeAll(ctx, out, entrants, byRotation(p.subject, p.rotation, Ours).time)
}

// planTimes fills in how long plans take to make.
func (t *typed[T]) planTimes(ctx context.Context, out *Result, p *product[T]) error {
	host, err := workload.HostPlanTime(ctx, t.r.engine, p.a, p.form, p.shape.N)
	if err != nil {
		return err
	}
	out.PlanSeconds = host.Seconds()
	if t.r.engine.Info().Backend != sparsek.CUDA {
		return nil
	}
	device, err := workload.DevicePlanTime(ctx, t.r.engine, p.a, p.form, p.shape.N)
	out.DevicePlanSeconds = device.Seconds()
	return err
}

// enter gives those that take turns, ours first.
func (t *typed[T]) enter(ctx context.Context, c Case, p *product[T]) ([]entrant, error) {
	ours := byRotation(p.subject, p.rotation, Ours)
	first, err := ours.time(ctx, 1)
	if err != nil {
		return nil, err
	}
	ours.repeats = interleave.Repeats(first[0])
	list := []entrant{ours}
	if c.Graph && t.r.engine.Info().Backend == sparsek.CUDA {
		list = append(list, inGraph(p.subject, p.rotation))
	}
	for _, peer := range t.peers {
		more, err := peer.enter(ctx, p.subject)
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
	if len(c.Held) > 0 && t.r.engine.Info().Backend == sparsek.CUDA {
		list = withHeld(t.r.engine, list, c.Held)
	}
	return list, nil
}

// inGraph is ours without the launch of each product.
func inGraph[T sparsek.Element](s *subject[T], rotation *workload.Rotation[T]) entrant {
	operands := s.operands()
	products := (fewestInGraph + rotation.Copies() - 1) / rotation.Copies() * rotation.Copies()
	return entrant{name: OursGraph, kernel: rotation.Info().Kernel, products: products, repeats: replays,
		time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
			return rotation.TimeGraph(ctx, operands, products, 1, repeats)
		},
		run: func(ctx context.Context, count int) (int, error) {
			graphs := max(2, (count+products-1)/products)
			_, err := rotation.TimeGraph(ctx, operands, products, graphs-1, 1)
			return graphs * products, err
		}}
}

// describe fills in what is known before anything is timed.
func (t *typed[T]) describe(c Case, p *product[T]) *Result {
	a, plan := p.a, p.rotation.Info()
	work := t.work(c, p)
	out := &Result{
		Name: c.Name, M: c.Shape.M, N: c.Shape.N, K: c.Shape.K, BlockM: c.BlockM, BlockK: c.BlockK, DType: c.DType, Seed: c.Seed,
		Op: opName(c.Form.Op), ColumnMajor: c.Form.ColumnMajor(), Pattern: c.Pattern, Shuffled: c.Shuffled, Transposed: c.Transposed, Diagonal: c.Diagonal, Blocks: a.Blocks(), Density: a.Density(), FillIn: fillIn(p.fill),
		Kernel: plan.Kernel, KernelReason: plan.Reason,
		EffectiveFLOP: work.FLOP, DenseFLOP: 2 * float64(c.Shape.M) * float64(c.Shape.N) * float64(c.Shape.K), Bytes: work.DRAM,
	}
	if c.File != nil {
		out.Matrix = c.File.Path
	}
	switch {
	case t.r.Chip() == nil || t.element.Size != workload.BFloat16.Size:
	case c.Form.Op == sparsek.DSD:
		out.Bounds = work.Bounds(*t.r.Chip())
	default: // how often a kernel brings what from L2 is not known here
		out.Bounds = []roofline.Bound{t.boundOfAnyKernel(c, p)}
	}
	return out
}

// opName is the name of a product in results; that of A B is left out.
func opName(op sparsek.Op) string {
	if op == sparsek.DSD {
		return ""
	}
	return op.String()
}

// boundOfAnyKernel is that of what a product has to read and write once, or of its operations.
func (t *typed[T]) boundOfAnyKernel(c Case, p *product[T]) roofline.Bound {
	values := float64(len(p.a.Values))
	s := c.Form.Sizes(c.Shape, len(p.a.Values), p.a.BlockK)
	o := roofline.Operands{Values: values, B: float64(s.X + s.B), C: float64(s.C), N: c.Shape.N, ElementBytes: t.element.Size}
	if c.Form.Op == sparsek.SDD {
		o.C = 0 // the values themselves are what is written
	}
	return roofline.OfAnyKernel(*t.r.Chip(), o)
}

// work is what a product takes.
func (t *typed[T]) work(c Case, p *product[T]) roofline.Work {
	return roofline.WorkOf(roofline.Product{M: c.Shape.M, N: c.Shape.N, K: c.Shape.K, BlockM: c.BlockM, BlockK: c.BlockK,
		ElementBytes: t.element.Size}, p.a.Pattern, p.rotation.Info())
}

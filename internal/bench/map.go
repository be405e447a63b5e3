// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/shapemap"
	"github.com/sparsek/sparsek/internal/bench/tunereval"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/internal/sys/stats"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

// Map is the suite that measures a map: it has points in place of cases.
const Map = "map"

// MapSummary is what it is, in a line.
const MapSummary = "block sizes by columns, types and patterns, as heat maps, beside all other libraries there are"

// MapPeers are those that can be measured beside the kernels of other libraries, which need not be named.
func MapPeers() []string { return []string{OpenBLAS, OneMKL, SciPy, Torch} }

// DefaultMapPeers are those that a map is compared with by default.
func DefaultMapPeers(backend sparsek.Backend) []string {
	if backend == sparsek.CPU {
		return []string{OpenBLAS, OneMKL, SciPy}
	}
	return nil
}

// CheckMapPeers refuses peers that a map has no place for.
func CheckMapPeers(names []string) error {
	for _, name := range names {
		if !slices.Contains(MapPeers(), name) {
			return fmt.Errorf("a map is compared with some of %s, beside the libraries whose kernels libsparsek offers: not with %s",
				strings.Join(MapPeers(), ", "), name)
		}
	}
	return nil
}

// MapRunner measures the cells of a map.
type MapRunner struct {
	r    *Runner
	seed uint64
	own  map[string]bool // our kernels by name
	// Ours whose tiles are 128 rows high, by name.
	tiled []sparsek.Kernel
}

// NewMapRunner prepares to measure cells, of patterns and values of a seed, beside peers by name.
func NewMapRunner(engine *sparsek.Engine, seed uint64, against []string) (*MapRunner, error) {
	r, err := newRunner(engine, Options{Against: against})
	if err != nil {
		return nil, err
	}
	kernels, err := engine.Library().Kernels()
	if err != nil {
		return nil, err
	}
	m := &MapRunner{r: r, seed: seed, own: map[string]bool{}}
	for _, k := range kernels {
		m.own[k.Name] = k.Library == ""
		if k.Library == "" && k.Backend == engine.Info().Backend && k.TileM == 128 && !k.Baseline {
			m.tiled = append(m.tiled, k)
		}
	}
	return m, nil
}

// Absent lists the peers that were asked for and were not there.
func (m *MapRunner) Absent() []Absence { return m.r.absent }

// Close ends what was started.
func (m *MapRunner) Close() error { return m.r.Close() }

// Measure measures the cells of a matrix, each for about the time that budget gives before it begins, and hands them to
// done. A cell that cannot be measured has the reason; an error is one that ends the map.
func (m *MapRunner) Measure(ctx context.Context, matrix shapemap.Matrix, budget func() time.Duration, done func(shapemap.Cell) error) error {
	switch matrix.DType {
	case workload.BFloat16.Name:
		return measureMatrix(ctx, m, workload.BFloat16, matrix, budget, done)
	case workload.Float16.Name:
		return measureMatrix(ctx, m, workload.Float16, matrix, budget, done)
	case workload.Float32.Name:
		return measureMatrix(ctx, m, workload.Float32, matrix, budget, done)
	case workload.Float64.Name:
		return measureMatrix(ctx, m, workload.Float64, matrix, budget, done)
	}
	return fmt.Errorf("there is no element type %q", matrix.DType)
}

// mapMatrix is a matrix of a map that is being measured.
type mapMatrix[T sparsek.Element] struct {
	m       *MapRunner
	element workload.Element[T]
	a       bsr.Matrix[T]
	matrix  *sparsek.Matrix
	sets    *workload.Sets[T] // nil: no operands but those of the tuner
	checked func(n int) bool
	about   shapemap.Cell // what all its cells have in common
	used    int           // rows of B that A's blocks meet
}

func measureMatrix[T sparsek.Element](ctx context.Context, m *MapRunner, e workload.Element[T], of shapemap.Matrix, budget func() time.Duration,
	done func(shapemap.Cell) error) (err error) {
	x, err := newMapMatrix(ctx, m, e, of)
	if x != nil {
		defer func() { err = errors.Join(err, x.close()) }()
	}
	for _, n := range of.N {
		cell := shapemap.Cell{}
		if err == nil {
			cell, err = x.cell(ctx, n, budget())
		}
		if err != nil {
			if Ends(ctx, err) && !errors.Is(err, sparsek.ErrOutOfMemory) {
				return err
			}
			cell.Failed, cell.Wrong = err.Error(), errors.Is(err, workload.ErrWrong)
		}
		cell.Key = shapemap.Key{DType: of.DType, Pattern: of.Pattern, Block: of.Block, N: n}
		if kept := done(cell); kept != nil {
			return kept
		}
		if x != nil {
			err = nil // of one number of columns
		}
	}
	return nil
}

// mostChecked is the number of elements of B and C up to which a result is checked: more would take longer than the
// measurement.
const mostChecked = 1 << 22

func newMapMatrix[T sparsek.Element](ctx context.Context, m *MapRunner, e workload.Element[T], of shapemap.Matrix) (x *mapMatrix[T], err error) {
	engine := m.r.engine
	backend := engine.Info().Backend
	spec := of.Spec(backend, m.seed)
	p, err := pattern.Generate(spec)
	if err != nil {
		return nil, err
	}
	rows, cols := spec.BlockRows*of.Block, spec.BlockCols*of.Block
	x = &mapMatrix[T]{m: m, element: e, a: workload.RandomA[T](p, rows, cols, of.Block, of.Block, m.seed)}
	x.checked = func(n int) bool { return (rows+cols)*n <= mostChecked }
	x.about = shapemap.Cell{Key: shapemap.Key{DType: of.DType, Pattern: of.Pattern, Block: of.Block}, M: rows, K: cols, Blocks: p.Blocks(), Density: p.Density(),
		LongestRow: int(tunereval.LoadsOf(p, rows, of.Block, of.Block).Longest),
		Rows64:     tunereval.LoadsOf(p, rows, of.Block, 64), Rows128: tunereval.LoadsOf(p, rows, of.Block, 128)}
	x.about.Ordered = x.about.Rows128.Loads
	met := make([]bool, p.BlockCols)
	for _, col := range p.ColIdx {
		if !met[col] {
			met[col] = true
			x.used += of.Block
		}
	}
	var sizes workload.Sizes
	for _, n := range of.N {
		if x.checked(n) || backend == sparsek.CPU && len(m.r.options.Against) > 0 { // peers on the CPU read B there
			sizes = sizes.Larger(workload.Form{}.Sizes(workload.Shape{M: rows, N: n, K: cols}, len(x.a.Values), of.Block))
		}
	}
	problem := workload.Problem[T]{A: x.a}
	if x.matrix, err = problem.Matrix(ctx, engine); err != nil {
		return nil, err
	}
	if err := x.order(ctx); err != nil {
		return nil, errors.Join(err, x.matrix.Close())
	}
	if sizes != (workload.Sizes{}) {
		x.sets, err = workload.NewSets[T](ctx, engine, sizes, m.seed)
	}
	if err != nil {
		return nil, errors.Join(err, x.matrix.Close())
	}
	return x, nil
}

// order fills in the loads of groups of 128 rows in the order that the planner gives the block rows: those of a plan with
// such tiles. Where no kernel has such a plan, nobody needs them.
func (x *mapMatrix[T]) order(ctx context.Context) error {
	if x.a.BlockM > 128 { // a row group is a part of a block row, of which a plan counts the entries once
		return nil
	}
	for _, k := range x.m.tiled {
		if k.DType != sparsek.DTypeOf[T]() {
			continue
		}
		plan, err := x.matrix.Plan(ctx, sparsek.PlanOptions{N: 256, Kernel: k.Name})
		if errors.Is(err, sparsek.ErrNoSuchKernel) {
			continue
		}
		if err != nil {
			return err
		}
		x.about.Ordered = min(x.about.Ordered, plan.Info().Entries)
		return plan.Close()
	}
	return nil
}

func (x *mapMatrix[T]) close() error {
	err := x.matrix.Close()
	if x.sets != nil {
		err = errors.Join(err, x.sets.Close())
	}
	return err
}

// cell measures one number of columns.
func (x *mapMatrix[T]) cell(ctx context.Context, n int, budget time.Duration) (shapemap.Cell, error) {
	c := x.about
	if err := x.choose(ctx, &c, n); err != nil {
		return c, err
	}
	if err := x.tune(ctx, &c, n, budget); err != nil {
		return c, err
	}
	ours := c.Find(c.Kernel)
	if ours == nil {
		return c, fmt.Errorf("%s was chosen, and not measured", c.Kernel)
	}
	c.Seconds = ours.Seconds
	x.bound(&c, n)
	if err := x.verify(ctx, &c, n); err != nil {
		return c, err
	}
	return c, x.peers(ctx, &c, n)
}

// verify leaves out the fastest of other libraries' kernels while its result is wrong or, where that is not compared, while
// it is faster than anything can be.
func (x *mapMatrix[T]) verify(ctx context.Context, c *shapemap.Cell, n int) error {
	for best := c.BestRival(); best != nil; best = c.BestRival() {
		wrong := error(nil)
		switch {
		case best.Seconds < c.Bound:
			wrong = fmt.Errorf("%w: %v is less than the bound", workload.ErrWrong, time.Duration(best.Seconds*1e9))
		case x.checked(n):
			wrong = x.check(ctx, best.Name, n)
		}
		if wrong == nil {
			return nil
		}
		if !errors.Is(wrong, workload.ErrWrong) {
			return wrong
		}
		name := best.Name
		x.m.r.miss(&missing{name, wrong.Error(), "leave it out: its time would say nothing"}, fmt.Sprintf("%s %s b%d N=%d", x.element.Name, c.Pattern, x.a.BlockM, n))
		c.Timed = slices.DeleteFunc(c.Timed, func(t shapemap.Timed) bool { return t.Name == name })
	}
	return nil
}

// check compares the result of a kernel with float64.
func (x *mapMatrix[T]) check(ctx context.Context, kernel string, n int) (err error) {
	plan, err := x.matrix.Plan(ctx, sparsek.PlanOptions{N: n, Kernel: kernel, AllowDense: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	return workload.CheckPlan(ctx, x.m.r.engine, x.a, workload.Form{}, n, plan, x.sets)
}

// choose fills in which kernel the library chooses, and checks its result.
func (x *mapMatrix[T]) choose(ctx context.Context, c *shapemap.Cell, n int) (err error) {
	plan, err := x.matrix.Plan(ctx, sparsek.PlanOptions{N: n, NoUserCache: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	c.Kernel, c.ChosenBy = plan.Info().Kernel, plan.Info().ChosenBy.String()
	if !x.checked(n) {
		return nil
	}
	c.Checked = true
	return workload.CheckPlan(ctx, x.m.r.engine, x.a, workload.Form{}, n, plan, x.sets)
}

// tune measures all kernels that serve, for about so long, and each at least once.
func (x *mapMatrix[T]) tune(ctx context.Context, c *shapemap.Cell, n int, budget time.Duration) (err error) {
	tuner, err := tuning.NewTuner(ctx, x.matrix, sparsek.PlanOptions{N: n, AllowDense: true, NoUserCache: true}, tuning.Options{Budget: budget, All: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tuner.Close()) }()
	for more := true; more; {
		if _, more, err = tuner.Step(ctx); err != nil {
			return err
		}
	}
	list, err := tuner.Candidates()
	if err != nil {
		return err
	}
	for _, k := range list {
		if k.Runs > 0 {
			c.Timed = append(c.Timed, shapemap.Timed{Name: k.Kernel, Rival: !x.m.own[k.Kernel], Runs: k.Runs, Seconds: k.Median.Seconds(),
				Spread: k.Spread, Predicted: k.Predicted.Seconds()})
		}
	}
	return nil
}

// bound fills in the time that the chip cannot come under.
func (x *mapMatrix[T]) bound(c *shapemap.Cell, n int) {
	if x.m.r.chip == nil {
		return
	}
	block := float64(x.a.BlockM) * float64(x.a.BlockK)
	b := roofline.OfAnyKernel(*x.m.r.chip, roofline.Operands{
		Values: float64(c.Blocks) * block, Index: float64(c.Blocks + x.a.BlockRows + 1),
		B: float64(x.used) * float64(n), C: float64(c.M) * float64(n), N: n, ElementBytes: x.element.Size,
	})
	c.Bound, c.Binds = b.Seconds, b.Name
}

// peers times other libraries that are no kernels of libsparsek. On the CPU ours takes turns with them, since the tuner
// begins each of its products with cold caches, and they do not.
func (x *mapMatrix[T]) peers(ctx context.Context, c *shapemap.Cell, n int) (err error) {
	shape := workload.Shape{M: c.M, N: n, K: c.K}
	dense := float64(x.element.Size) * float64(c.M) * float64(c.K)
	s := &subject[T]{engine: x.m.r.engine, element: x.element, shape: shape, a: x.a, sets: x.sets, copies: 2, denseCopies: 1, dense: dense <= mapDense}
	var list []entrant
	defer func() {
		for _, e := range list {
			if e.close != nil {
				err = errors.Join(err, e.close())
			}
		}
	}()
	for _, name := range x.m.r.options.Against {
		entered, err := newPeer[T](name, x.m.r).enter(ctx, s)
		list = append(list, entered...)
		absent, failed := missingIn(err)
		for _, m := range absent {
			x.m.r.miss(m, fmt.Sprintf("%s %s b%d N=%d", x.element.Name, c.Pattern, x.a.BlockM, s.shape.N))
		}
		if failed != nil {
			return failed
		}
	}
	if len(list) == 0 {
		return nil
	}
	peers, onCPU := len(list), x.m.r.engine.Info().Backend == sparsek.CPU
	if onCPU {
		ours, err := byKernel[T]{library: "libsparsek"}.enterOne(ctx, s, c.Kernel, s.copies)
		if err != nil {
			return err
		}
		list = append(list, ours)
	}
	times := make([][]time.Duration, len(list))
	for range mapRounds {
		for i, e := range list {
			some, err := e.time(ctx, max(1, e.repeats))
			if err != nil {
				return err
			}
			times[i] = append(times[i], some...)
		}
	}
	for i, e := range list {
		t := stats.Summarise(times[i])
		if i < peers {
			c.Timed = append(c.Timed, shapemap.Timed{Name: e.name, Rival: true, Runs: t.Runs, Seconds: t.Median.Seconds(), Spread: t.Spread()})
		} else {
			c.Seconds = t.Median.Seconds()
		}
	}
	return nil
}

const (
	mapDense  = 256 << 20 // how many bytes a dense A of a map may have for peers that are given one
	mapRounds = 3         // of turns with peers
)

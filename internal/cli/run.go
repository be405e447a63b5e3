// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// runFlags are the flags of run, and of tune, which has some of them.
type runFlags struct {
	command         string
	matrix, pattern string
	size            sizeFlag
	n               int
	block           blockFlag
	density         *densityFlag
	seed            uint64
	dtype           dtypeFlag
	epilogue        *epilogueFlags
	b, out          string
	alpha           float64
	allowOverflow   bool
	device          deviceFlag
	threads         int
	kernel          string
	allowDense      bool
	repeats         int
	check, json     bool
}

// newProductFlags are the flags that say what is multiplied and on what.
func newProductFlags(flags *flag.FlagSet) *runFlags {
	o := &runFlags{command: flags.Name(), block: blockFlag{64, 64}, dtype: "bf16", alpha: 1}
	flags.StringVar(&o.matrix, "matrix", "", "A from a `file`: .mtx, .mtx.gz, or .npz of scipy.sparse.save_npz")
	flags.StringVar(&o.pattern, "pattern", "", "A by `name`: "+strings.Join(pattern.Names(), ", "))
	flags.Var(&o.size, "size", "`MxNxK`: A is M x K, B is K x N")
	flags.IntVar(&o.n, "n", 256, "columns of a random B for --matrix without --size")
	flags.Var(&o.block, "block", "`BMxBK`, or one number for both")
	o.density = densityFlags(flags, 0.125)
	flags.Uint64Var(&o.seed, "seed", 0, "of pattern, values and B (default 0)")
	flags.Var(&o.dtype, "dtype", "element `type`: "+strings.Join(dtypes, ", "))
	o.epilogue = newEpilogueFlags(flags)
	flags.BoolVar(&o.allowOverflow, "allow-overflow", false, "take values that --dtype or --out-dtype makes infinite")
	flags.Var(&o.device, "device", "`name`: auto, cpu, gpu or gpu:N")
	flags.IntVar(&o.threads, "threads", 0, "of the CPU back-end (default: one for each core)")
	flags.BoolVar(&o.allowDense, "allow-dense", false, "let kernels multiply absent blocks as zeros: Inf and NaN in B may make NaN of C")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return o
}

func newRunFlags(flags *flag.FlagSet) *runFlags {
	o := newProductFlags(flags)
	flags.StringVar(&o.epilogue.biasFile, "bias-file", "", "the bias from a .npy `file` of f2, f4 or f8 (else random)")
	flags.StringVar(&o.b, "b", "", "B from a .npy `file` of f2, f4 or f8 (else random)")
	flags.StringVar(&o.out, "out", "", "write C to a .npy `file`; bf16 is written as f4")
	flags.Float64Var(&o.alpha, "alpha", 1, "factor of the product, a float32")
	flags.StringVar(&o.kernel, "kernel", "", "by `name`, as info lists them (default: the library chooses)")
	flags.IntVar(&o.repeats, "repeats", 0, "timed products (default: 5 on the CPU, 30 on a GPU)")
	flags.BoolVar(&o.check, "check", false, "compare every element of C with a float64 reference")
	return o
}

// validate refuses what does not go together.
func (o *runFlags) validate(set map[string]bool) error {
	if (o.matrix == "") == (o.pattern == "") {
		return failf(exitUsage, "%s: give either --matrix or --pattern", o.command)
	}
	if o.repeats < 0 {
		return failf(exitUsage, "%s: --repeats %d: want a positive number", o.command, o.repeats)
	}
	if v := float64(float32(o.alpha)); math.IsNaN(v) || math.IsInf(v, 0) {
		return failf(exitUsage, "%s: --alpha %v: must be finite, as a float32", o.command, o.alpha)
	}
	if err := o.epilogue.validate(); err != nil {
		return err
	}
	if o.n < 1 {
		return failf(exitUsage, "%s: --n %d: want a positive number", o.command, o.n)
	}
	if set["n"] && (o.pattern != "" || set["size"] || o.b != "") {
		return failf(exitUsage, "%s: --n is for --matrix with neither --size nor --b, which say it already", o.command)
	}
	if o.matrix != "" {
		if o.density.from != "" {
			return failf(exitUsage, "%s: --%s is for --pattern: a matrix has its own", o.command, o.density.from)
		}
		return nil
	}
	uses, err := pattern.UsesDensity(o.pattern)
	if err != nil {
		return failf(exitUsage, "%s: %w", o.command, err)
	}
	if !uses && o.density.from != "" {
		return failf(exitUsage, "%s: pattern %s has its own density: leave out --%s", o.command, o.pattern, o.density.from)
	}
	if !set["size"] {
		return failf(exitUsage, "%s: --pattern needs --size MxNxK", o.command)
	}
	return nil
}

func run(ctx context.Context, e *environment, args []string) error {
	flags := newFlags("run")
	o := newRunFlags(flags)
	if err := parse(e, flags, args, false); err != nil {
		return err
	}
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if err := o.validate(set); err != nil {
		return err
	}
	if o.out != "" {
		if err := checkOut(o.out); err != nil {
			return fail(exitBadOutput, fmt.Errorf("run: --out %s: %w", o.out, err))
		}
	}
	switch o.dtype {
	case "bf16":
		return runTyped(ctx, e, o, workload.BFloat16)
	case "fp16":
		return runTyped(ctx, e, o, workload.Float16)
	}
	return runTyped(ctx, e, o, workload.Float32)
}

func runTyped[T sparsek.Element](ctx context.Context, e *environment, o *runFlags, in workload.Element[T]) error {
	switch o.epilogue.outputOf(o.dtype) {
	case "bf16":
		return runTo(ctx, e, o, in, workload.BFloat16)
	case "fp16":
		return runTo(ctx, e, o, in, workload.Float16)
	}
	return runTo(ctx, e, o, in, workload.Float32)
}

// checkOut refuses a place where no file can come to be. The file comes there by a rename, which would take the place of
// a device or a pipe rather than write to it.
func checkOut(path string) error {
	if at, err := os.Stat(path); err == nil && at.IsDir() {
		return errors.New("this is a folder: name a file in it")
	} else if err == nil && !at.Mode().IsRegular() {
		return errors.New("this is there and is no ordinary file")
	}
	folder := filepath.Dir(path)
	at, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it first", folder)
	}
	if err == nil && !at.IsDir() {
		return fmt.Errorf("%s is no folder", folder)
	}
	return err
}

func runTo[T, C sparsek.Element](ctx context.Context, e *environment, o *runFlags, in workload.Element[T], element workload.Element[C]) (err error) {
	c, err := newContext(o.device, o.threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var out *matio.Output
	if o.out != "" {
		if out, err = matio.CreateDense(o.out); err != nil {
			return fail(exitBadOutput, err)
		}
		defer func() { err = errors.Join(err, out.Close()) }()
	}

	bar := e.progress.Bar("run", 3, term.Count) // load, multiply, check
	r, result, err := compute(ctx, c, o, in, element, bar)
	if err == nil && out != nil {
		// Only a result that stood the check is left behind.
		if err = fail(exitBadOutput, matio.WriteDense(out, result, element.Encoding)); err == nil {
			r.Out = o.out
		}
	}
	endBar(bar, err)
	if r == nil {
		return err
	}
	if o.json {
		return errors.Join(err, printJSON(e.stdout, r))
	}
	return errors.Join(err, printRun(e, r, c.Info()))
}

// compute loads, solves and checks. With a wrong result there are a report and an error.
func compute[T, C sparsek.Element](ctx context.Context, c *sparsek.Engine, o *runFlags, element workload.Element[T], out workload.Element[C], bar *term.Bar) (*report, matio.Dense[C], error) {
	in, err := load(ctx, o, element, out)
	if err != nil {
		return nil, matio.Dense[C]{}, err
	}
	bar.Add(1)
	s, err := workload.Solve(ctx, c, in.problem, in.epilogue, workload.Options{Kernel: o.kernel, AllowDense: o.allowDense, Repeats: o.repeats})
	if err != nil {
		return nil, matio.Dense[C]{}, err
	}
	bar.Add(1)
	r := newReport(in.problem, in.epilogue, s, element, c.Info())
	r.Matrix, r.Pattern, r.Seed, r.Fill, r.Over = o.matrix, o.pattern, o.seed, in.fill, in.over
	if err := ctx.Err(); err != nil {
		return nil, matio.Dense[C]{}, err
	}
	if o.check {
		err = checkSolution(r, c, in.problem, in.epilogue, s)
	}
	bar.Add(1)
	return r, s.C, err
}

func printRun(e *environment, r *report, c sparsek.EngineInfo) error {
	t := &table{left: 2}
	source := r.Matrix
	if source == "" {
		source = fmt.Sprintf("pattern %s, seed %d", r.Pattern, r.Seed)
	}
	t.add("matrix", fmt.Sprintf("%s: %d x %d, %s", source, r.M, r.K, r.DType))
	t.add("blocks", fmt.Sprintf("%d of %d x %d, %s of all", r.Blocks, r.BlockM, r.BlockK, percent(r.Density)))
	switch {
	case r.Fill != nil && r.Blocks == 0:
		t.add("fill-in", "no blocks")
	case r.Fill != nil:
		t.add("fill-in", fmt.Sprintf("%d nonzeros, %d elements stored: %s for each", r.Fill.Nonzeros, r.Fill.Stored, digits(r.Fill.Ratio)))
	}
	if r.Over.A+r.Over.B > 0 {
		t.add("overflow", fmt.Sprintf("%d values of A and %d of B became infinite", r.Over.A, r.Over.B))
	}
	if r.Over.Bias > 0 {
		t.add("overflow", fmt.Sprintf("%d values of the bias became infinite", r.Over.Bias))
	}
	t.add("product", fmt.Sprintf("%d x %d by %d x %d", r.M, r.K, r.K, r.N))
	if epilogue := describeEpilogue(r); epilogue != "" {
		t.add("epilogue", epilogue)
	}
	t.add("back-end", backendLine(c))
	t.add("kernel", fmt.Sprintf("%s: %s", r.Kernel, r.KernelReason))
	if r.Recomputed > 0 {
		t.add("", fmt.Sprintf("%d slabs were computed again: A or B holds Inf or NaN, or sums overflow", r.Recomputed))
	}
	t.add("time", fmt.Sprintf("%s, the median of %d (quartiles %s and %s)", formatSeconds(r.Seconds), r.Runs,
		formatSeconds(r.Quartiles[0]), formatSeconds(r.Quartiles[1])))
	t.add("rate", fmt.Sprintf("%s effective TFLOP/s, %s dense-equivalent TFLOP/s", digits(r.Effective), digits(r.DenseEquivalent)))
	if k := r.Check; k != nil {
		verdict := fmt.Sprintf("all %d elements are within their bounds", k.Elements)
		if k.Failures > 0 {
			verdict = fmt.Sprintf("%d of %d elements are WRONG", k.Failures, k.Elements)
		}
		t.add("check", fmt.Sprintf("%s; |C|max %s, largest error %s", verdict, digits(float64(k.MaxAbsC)), digits(float64(k.MaxError))))
		if k.WorstRow >= 0 { // below, there is no element
			t.add("", "closest to its bound: "+k.closest()+fmt.Sprintf(", at row %d, column %d", k.WorstRow, k.WorstCol))
		}
	}
	if r.Out != "" {
		t.add("written", r.Out)
	}
	return t.print(e.stdout)
}

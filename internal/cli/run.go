// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// productFlags say what is multiplied and on what; run and tune have them.
type productFlags struct {
	Matrix        string       `group:"Product" placeholder:"FILE" help:"A from a file: .mtx, .mtx.gz, or .npz of scipy.sparse.save_npz."`
	Pattern       string       `group:"Product" placeholder:"NAME" help:"A by the name of its pattern: ${patterns}."`
	Size          *sizeFlag    `group:"Product" placeholder:"MxNxK" help:"A is M x K, B is K x N."`
	N             count        `group:"Product" default:"256" placeholder:"N" help:"Columns of a random B, for --matrix without --size."`
	Block         anyBlockFlag `group:"Product" placeholder:"BMxBK" help:"Blocks of A, one number for both, or auto for little fill-in of a file (default: those of a bsr .npz, else 64x64)."`
	densityFlags  `group:"Product"`
	Op            opFlag      `name:"op" group:"Product" default:"dsd" placeholder:"NAME" help:"The product: dsd (A B), dsd_t (A^T B), dds (B A), dds_t (B A^T), or sdd (X B where A has blocks). N is the extent that A lacks."`
	ColumnMajor   columnsFlag `group:"Product" placeholder:"OPERANDS" help:"Which of x, b and c lie column-major in memory, as bc (default: none)."`
	Seed          uint64      `group:"Product" placeholder:"N" help:"Of pattern, values and B (default: 0)."`
	DType         dtypeFlag   `name:"dtype" group:"Product" default:"bf16" placeholder:"TYPE" help:"Element type of A and B: bf16, fp16, fp32 or fp64."`
	ADType        dtypeFlag   `name:"a-dtype" group:"Product" placeholder:"TYPE" help:"Element type of A alone, narrower than --dtype, which is then B's: bf16, fp16 or fp32."`
	AllowOverflow bool        `group:"Product" help:"Accept values that --dtype, --a-dtype or --out-dtype makes infinite."`
	epilogueFlags `group:"Epilogue"`
	engineFlags   `group:"Device and kernel"`
	AllowDense    bool `group:"Device and kernel" help:"Admit kernels that multiply absent blocks as zeros: Inf and NaN in B may make NaN of C."`
	jsonFlag
}

// operandFlags are the operands that may come from files, beside A.
type operandFlags struct {
	B        string `name:"b" group:"Product" placeholder:"FILE" help:"B from a .npy file of f2, f4 or f8 (default: random)."`
	BiasFile string `group:"Epilogue" placeholder:"FILE" help:"The bias from a .npy file of f2, f4 or f8 (default: random)."`
	Alpha    factor `group:"Epilogue" default:"1" placeholder:"NUMBER" help:"Factor of the product, a float32."`
}

// runCommand is "sparsek run".
type runCommand struct {
	productFlags
	operandFlags
	Kernel  string      `group:"Device and kernel" placeholder:"NAME" help:"A kernel of those that info lists (default: the library chooses)."`
	Compute computeFlag `group:"Device and kernel" placeholder:"NAME" help:"How elements are multiplied: exact, or tf32, which allows fp32 to be rounded to TF32 first (default: exact)."`
	Repeats count       `group:"Device and kernel" placeholder:"N" help:"Timed products (default: 5 on the CPU, 30 on a GPU)."`
	Check   bool        `group:"Output" help:"Compare every element of C with a float64 reference."`
	Out     string      `group:"Output" placeholder:"FILE" help:"Write C to a .npy file; bf16 is written as f4."`
}

func (*runCommand) Help() string {
	return `Examples:
  sparsek run --matrix A.npz --n 512 --check
  sparsek run --pattern causal --size 8192x8192x8192 --out-dtype fp32 --json`
}

// validateOp refuses what a product does not have.
func (o *productFlags) validateOp(command string) error {
	if o.Op.Op == sparsek.SDD {
		if o.Bias.Bias != sparsek.NoBias {
			return failf(exitUsage, "%s: --op sdd has no bias", command)
		}
		if o.ColumnMajor.c == sparsek.ColumnMajor {
			return failf(exitUsage, "%s: --column-major: C of --op sdd is blocks, which are row-major", command)
		}
	} else if o.ColumnMajor.x == sparsek.ColumnMajor {
		return failf(exitUsage, "%s: --column-major: X is for --op sdd", command)
	}
	return nil
}

// narrows is whether A is of a type of its own.
func (o *productFlags) narrows() bool { return o.ADType != "" && o.ADType != o.DType }

// validate refuses what does not go together.
func (o *productFlags) validate(e *environment, b string) error {
	command := e.args[0]
	if err := o.validateOp(command); err != nil {
		return err
	}
	if o.narrows() && o.ADType.bytes() >= o.DType.bytes() {
		return failf(exitUsage, "%s: --a-dtype %s is not narrower than --dtype %s", command, o.ADType, o.DType)
	}
	if (o.Matrix == "") == (o.Pattern == "") {
		return failf(exitUsage, "%s: give either --matrix or --pattern", command)
	}
	if e.given["n"] && (o.Pattern != "" || o.Size != nil || b != "") {
		return failf(exitUsage, "%s: --n is for --matrix with neither --size nor --b, which say it already", command)
	}
	if o.Matrix != "" {
		if o.densityFlags.given() != "" {
			return failf(exitUsage, "%s: --%s is for --pattern: a matrix has its own", command, o.densityFlags.given())
		}
		return nil
	}
	uses, err := pattern.UsesDensity(o.Pattern)
	if err != nil {
		return failf(exitUsage, "%s: %w", command, err)
	}
	if o.Block.auto {
		return failf(exitUsage, "%s: --block auto is for --matrix: a pattern is made of blocks", command)
	}
	if !uses && o.densityFlags.given() != "" {
		return failf(exitUsage, "%s: pattern %s has its own density: leave out --%s", command, o.Pattern, o.densityFlags.given())
	}
	if o.Size == nil {
		return failf(exitUsage, "%s: --pattern needs --size MxNxK", command)
	}
	return nil
}

// Run multiplies.
func (o *runCommand) Run(ctx context.Context, e *environment) error {
	if err := o.validate(e, o.B); err != nil {
		return err
	}
	if o.Out != "" {
		if err := checkOut(o.Out); err != nil {
			return fail(exitBadOutput, fmt.Errorf("run: --out %s: %w", o.Out, err))
		}
	}
	switch o.DType {
	case "bf16":
		return runTyped(ctx, e, o, workload.BFloat16)
	case "fp16":
		return runTyped(ctx, e, o, workload.Float16)
	case "fp64":
		return runTyped(ctx, e, o, workload.Float64)
	}
	return runTyped(ctx, e, o, workload.Float32)
}

func runTyped[T sparsek.Element](ctx context.Context, e *environment, o *runCommand, in workload.Element[T]) error {
	switch o.outputOf(o.DType) {
	case "bf16":
		return runTo(ctx, e, o, in, workload.BFloat16)
	case "fp16":
		return runTo(ctx, e, o, in, workload.Float16)
	case "fp64":
		return runTo(ctx, e, o, in, workload.Float64)
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

func runTo[T, C sparsek.Element](ctx context.Context, e *environment, o *runCommand, in workload.Element[T], element workload.Element[C]) (err error) {
	engine, err := o.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	var out *matio.Output
	if o.Out != "" {
		if out, err = matio.CreateDense(o.Out); err != nil {
			return fail(exitBadOutput, err)
		}
		defer func() { err = errors.Join(err, out.Close()) }()
	}

	bar := e.progress.Step("run")
	r, result, err := compute(ctx, engine, o, in, element)
	if err == nil && out != nil {
		// Only a result that stood the check is left behind.
		if err = fail(exitBadOutput, matio.WriteDense(out, result, element.Encoding)); err == nil {
			r.Out = o.Out
		}
	}
	bar.End(err)
	if r == nil {
		return err
	}
	if o.JSON {
		return errors.Join(err, printJSON(e.stdout, r))
	}
	return errors.Join(err, printRun(e, r, engine.Info()))
}

// compute loads, solves and checks. With a wrong result there are a report and an error.
func compute[T, C sparsek.Element](ctx context.Context, engine *sparsek.Engine, o *runCommand, element workload.Element[T], out workload.Element[C]) (*report, matio.Dense[C], error) {
	in, err := load(ctx, &o.productFlags, o.operandFlags, element, out)
	if err != nil {
		return nil, matio.Dense[C]{}, err
	}
	s, err := workload.Solve(ctx, engine, in.problem, in.epilogue, workload.Options{Kernel: o.Kernel, AllowDense: o.AllowDense, Compute: o.Compute.Compute, Repeats: int(o.Repeats)})
	if err != nil {
		return nil, matio.Dense[C]{}, err
	}
	r := newReport(in.problem, in.epilogue, s, element, engine.Info())
	if o.Compute.Compute != sparsek.Exact {
		r.Compute = o.Compute.String()
	}
	if o.narrows() {
		r.ADType = string(o.ADType)
	}
	r.Matrix, r.Pattern, r.Seed, r.Fill, r.Over = o.Matrix, o.Pattern, o.Seed, in.fill, in.over
	r.NotFinite = in.strange
	if err := ctx.Err(); err != nil {
		return nil, matio.Dense[C]{}, err
	}
	if o.Check {
		err = checkSolution(r, engine, in.problem, in.epilogue, s)
	}
	return r, s.C, err
}

// largeFillIn is what is worth a hint.
const largeFillIn = 4

func printRun(e *environment, r *report, c sparsek.EngineInfo) error {
	t := &table{left: 2}
	source := r.Matrix
	if source == "" {
		source = fmt.Sprintf("pattern %s, seed %d", r.Pattern, r.Seed)
	}
	t.add("matrix", fmt.Sprintf("%s: %d x %d, %s", source, r.M, r.K, or(r.ADType, r.DType)))
	t.add("blocks", fmt.Sprintf("%d of %d x %d, %s of all", r.Blocks, r.BlockM, r.BlockK, percent(r.Density)))
	switch {
	case r.Fill != nil && r.Blocks == 0:
		t.add("fill-in", "no blocks")
	case r.Fill != nil:
		t.add("fill-in", fmt.Sprintf("%d nonzeros, %d elements stored: %s for each", r.Fill.Nonzeros, r.Fill.Stored, digits(r.Fill.Ratio)))
		if r.Fill.Ratio >= largeFillIn {
			t.add("", fmt.Sprintf("other blocks may store less: --block auto, or see sparsek info --matrix %s", r.Matrix))
		}
	}
	if r.Over.A+r.Over.B > 0 {
		t.add("overflow", fmt.Sprintf("%d values of A and %d of B became infinite", r.Over.A, r.Over.B))
	}
	if r.Over.Bias > 0 {
		t.add("overflow", fmt.Sprintf("%d values of the bias became infinite", r.Over.Bias))
	}
	if r.NotFinite > 0 {
		t.add("note", fmt.Sprintf("%d values of A or B are infinite or NaN: so are elements of C", r.NotFinite))
	}
	product := describeProduct(r)
	if r.Compute != "" {
		product += ", elements may be rounded to " + r.Compute
	}
	t.add("product", product)
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

// describeProduct is "8192 x 4096 by 4096 x 256", or says which other product it is.
func describeProduct(r *report) string {
	var text string
	switch r.Op {
	case "dsd_t":
		text = fmt.Sprintf("A^T, %d x %d, by %d x %d", r.K, r.M, r.M, r.N)
	case "dds":
		text = fmt.Sprintf("%d x %d by A, %d x %d", r.N, r.M, r.M, r.K)
	case "dds_t":
		text = fmt.Sprintf("%d x %d by A^T, %d x %d", r.N, r.K, r.K, r.M)
	case "sdd":
		text = fmt.Sprintf("%d x %d by %d x %d, where A has blocks", r.M, r.N, r.N, r.K)
	default:
		text = fmt.Sprintf("%d x %d by %d x %d", r.M, r.K, r.K, r.N)
	}
	if r.ColumnMajor != "" {
		text += "; column-major: " + r.ColumnMajor
	}
	if r.CopiesA {
		text += "; A's blocks are copied, transposed"
	}
	if r.CopiesB {
		text += "; B is copied to rows"
	}
	if r.CopiesC {
		text += "; C is copied from rows"
	}
	return text
}

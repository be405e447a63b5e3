// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// verifyCommand is "sparsek verify".
type verifyCommand struct {
	Size          sizeFlag  `group:"Product" default:"4096x4096x4096" placeholder:"MxNxK" help:"A is M x K, B is K x N."`
	Block         blockFlag `group:"Product" default:"64x64" placeholder:"BMxBK" help:"Blocks of A; one number stands for both."`
	densityFlags  `group:"Product"`
	Seed          uint64    `group:"Product" placeholder:"N" help:"Of pattern, values and B (default: 0)."`
	DType         dtypeFlag `name:"dtype" group:"Product" default:"bf16" placeholder:"TYPE" help:"Element type of A and B: bf16, fp16, fp32 or fp64."`
	epilogueFlags `group:"Epilogue"`
	engineFlags   `group:"Device and kernel"`
	Kernel        string `group:"Device and kernel" placeholder:"NAME" help:"A kernel of those that info lists (default: the library chooses)."`
	jsonFlag
}

func (*verifyCommand) Help() string {
	return `Examples:
  sparsek verify
  sparsek verify --size 1024x256x1024 --block 32 --dtype fp32 --device cpu`
}

// verifyPatterns are the cases: what is sparse at random, and two masks of attention.
var verifyPatterns = []string{"random", "window", "causal"}

// verifyResult is what verify prints as JSON.
type verifyResult struct {
	Passed bool      `json:"passed"`
	Cases  []*report `json:"cases"`
}

// Run multiplies and checks.
func (o *verifyCommand) Run(ctx context.Context, e *environment) (err error) {
	engine, err := o.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()

	bar := e.progress.Bar("verify", int64(len(verifyPatterns)), term.Count)
	var result verifyResult
	var wrong, broken error
	for _, name := range verifyPatterns {
		r, err := verifyPattern(ctx, engine, o, name)
		if r != nil {
			result.Cases = append(result.Cases, r)
		}
		if err != nil && exitCode(err) != exitWrongResult {
			broken = fmt.Errorf("%s: %w", name, err)
			break
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", name, err))
		}
		bar.Add(1)
	}
	// What stopped the work comes first, so that it gives the exit code.
	failed := errors.Join(broken, wrong)
	result.Passed = failed == nil
	bar.End(failed)
	if o.JSON {
		return errors.Join(failed, printJSON(e.stdout, result))
	}
	if len(result.Cases) == 0 {
		return failed
	}
	return errors.Join(failed, printVerify(e, o, engine.Info(), result))
}

func verifyPattern(ctx context.Context, engine *sparsek.Engine, o *verifyCommand, name string) (*report, error) {
	switch o.DType {
	case "bf16":
		return verifyTyped(ctx, engine, o, name, workload.BFloat16)
	case "fp16":
		return verifyTyped(ctx, engine, o, name, workload.Float16)
	case "fp64":
		return verifyTyped(ctx, engine, o, name, workload.Float64)
	}
	return verifyTyped(ctx, engine, o, name, workload.Float32)
}

func verifyTyped[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, o *verifyCommand, name string, in workload.Element[T]) (*report, error) {
	switch o.outputOf(o.DType) {
	case "bf16":
		return verifyTo(ctx, engine, o, name, in, workload.BFloat16)
	case "fp16":
		return verifyTo(ctx, engine, o, name, in, workload.Float16)
	case "fp64":
		return verifyTo(ctx, engine, o, name, in, workload.Float64)
	}
	return verifyTo(ctx, engine, o, name, in, workload.Float32)
}

func verifyTo[T, C sparsek.Element](ctx context.Context, engine *sparsek.Engine, o *verifyCommand, name string, in workload.Element[T], out workload.Element[C]) (*report, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := generate(patternSpec{name, o.Size, o.Block, o.value(defaultDensity), o.Seed, out.Size, sparsek.DSD}, in, nil)
	if err != nil {
		return nil, err
	}
	epilogue, _, err := newEpilogue(&o.epilogueFlags, "", out, o.Size.m, o.Size.n, o.Seed)
	if err != nil {
		return nil, err
	}
	options := workload.Options{Kernel: o.Kernel}
	if engine.Info().Backend == sparsek.CPU {
		options.Repeats = 3 // the whole is to take seconds
	}
	s, err := workload.Solve(ctx, engine, p, epilogue, options)
	if err != nil {
		return nil, err
	}
	r := newReport(p, epilogue, s, in, engine.Info())
	r.Pattern, r.Seed = name, o.Seed
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r, checkSolution(r, engine, p, epilogue, s)
}

func printVerify(e *environment, o *verifyCommand, c sparsek.EngineInfo, result verifyResult) error {
	fmt.Fprintf(e.stdout, "back-end  %s\n", backendLine(c))
	elements := string(o.DType)
	if epilogue := describeEpilogue(result.Cases[0]); epilogue != "" {
		elements += " (" + epilogue + ")"
	}
	fmt.Fprintf(e.stdout, "products  %s (MxNxK), blocks of %s, %s, seed %d; all %d elements of each C checked\n\n",
		&o.Size, &o.Block, elements, o.Seed, int64(o.Size.m)*int64(o.Size.n))
	t := &table{left: 3}
	t.add("", "", "", "", "effective", "dense-equivalent", "", "largest", "closest to")
	t.add("case", "back-end", "kernel", "time", "TFLOP/s", "TFLOP/s", "|C|max", "error", "its bound")
	for _, r := range result.Cases {
		k := r.Check
		if k == nil {
			continue
		}
		t.add(r.Pattern+" "+percent(r.Density), r.Backend, r.Kernel, formatSeconds(r.Seconds), digits(r.Effective),
			digits(r.DenseEquivalent), digits(float64(k.MaxAbsC)), digits(float64(k.MaxError)),
			k.closest())
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	if result.Passed {
		fmt.Fprintln(e.stdout, "\nverify: every element is within its error bound")
	}
	return nil
}

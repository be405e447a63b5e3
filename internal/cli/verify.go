// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	size     sizeFlag
	block    blockFlag
	density  *densityFlag
	seed     uint64
	dtype    dtypeFlag
	epilogue *epilogueFlags
	device   deviceFlag
	threads  int
	kernel   string
	json     bool
}

func newVerifyFlags(flags *flag.FlagSet) *verifyFlags {
	o := &verifyFlags{size: sizeFlag{4096, 4096, 4096}, block: blockFlag{64, 64}, dtype: "bf16"}
	flags.Var(&o.size, "size", "`MxNxK`: A is M x K, B is K x N")
	flags.Var(&o.block, "block", "`BMxBK`, or one number for both")
	o.density = densityFlags(flags, 0.125)
	flags.Uint64Var(&o.seed, "seed", 0, "of pattern, values and B (default 0)")
	flags.Var(&o.dtype, "dtype", "element `type`: bf16, fp16, fp32")
	o.epilogue = newEpilogueFlags(flags)
	flags.Var(&o.device, "device", "`name`: auto, cpu, gpu or gpu:N")
	flags.IntVar(&o.threads, "threads", 0, "of the CPU back-end (default: one for each core)")
	flags.StringVar(&o.kernel, "kernel", "", "by `name`, as info lists them (default: the library chooses)")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return o
}

// verifyPatterns are the cases: what is sparse at random, and two masks of attention.
var verifyPatterns = []string{"random", "window", "causal"}

// verifyResult is what verify prints as JSON.
type verifyResult struct {
	Passed bool      `json:"passed"`
	Cases  []*report `json:"cases"`
}

func verify(ctx context.Context, e *environment, args []string) (err error) {
	flags := newFlags("verify")
	o := newVerifyFlags(flags)
	if err := parse(e, flags, args, false); err != nil {
		return err
	}
	c, err := newContext(o.device, o.threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()

	bar := e.progress.Bar("verify", int64(len(verifyPatterns)), term.Count)
	var result verifyResult
	var wrong, broken error
	for _, name := range verifyPatterns {
		r, err := verifyPattern(ctx, c, o, name)
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
	endBar(bar, failed)
	if o.json {
		return errors.Join(failed, printJSON(e.stdout, result))
	}
	if len(result.Cases) == 0 {
		return failed
	}
	return errors.Join(failed, printVerify(e, o, c.Info(), result))
}

func verifyPattern(ctx context.Context, c *sparsek.Engine, o *verifyFlags, name string) (*report, error) {
	switch o.dtype {
	case "bf16":
		return verifyTyped(ctx, c, o, name, workload.BFloat16)
	case "fp16":
		return verifyTyped(ctx, c, o, name, workload.Float16)
	}
	return verifyTyped(ctx, c, o, name, workload.Float32)
}

func verifyTyped[T sparsek.Element](ctx context.Context, c *sparsek.Engine, o *verifyFlags, name string, in workload.Element[T]) (*report, error) {
	switch o.epilogue.outputOf(o.dtype) {
	case "bf16":
		return verifyTo(ctx, c, o, name, in, workload.BFloat16)
	case "fp16":
		return verifyTo(ctx, c, o, name, in, workload.Float16)
	}
	return verifyTo(ctx, c, o, name, in, workload.Float32)
}

func verifyTo[T, C sparsek.Element](ctx context.Context, c *sparsek.Engine, o *verifyFlags, name string, in workload.Element[T], out workload.Element[C]) (*report, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := generate(patternSpec{name, o.size, o.block, o.density.value, o.seed, out.Size}, in, nil)
	if err != nil {
		return nil, err
	}
	epilogue, _, err := newEpilogue(o.epilogue, out, o.size.m, o.size.n, o.seed)
	if err != nil {
		return nil, err
	}
	options := workload.Options{Kernel: o.kernel}
	if c.Info().Backend == sparsek.CPU {
		options.Repeats = 3 // the whole is to take seconds
	}
	s, err := workload.Solve(ctx, c, p, epilogue, options)
	if err != nil {
		return nil, err
	}
	r := newReport(p, epilogue, s, in, c.Info())
	r.Pattern, r.Seed = name, o.seed
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r, checkSolution(r, c, p, epilogue, s)
}

func printVerify(e *environment, o *verifyFlags, c sparsek.EngineInfo, result verifyResult) error {
	fmt.Fprintf(e.stdout, "back-end  %s\n", backendLine(c))
	elements := string(o.dtype)
	if epilogue := describeEpilogue(result.Cases[0]); epilogue != "" {
		elements += " (" + epilogue + ")"
	}
	fmt.Fprintf(e.stdout, "products  %s (MxNxK), blocks of %s, %s, seed %d; all %d elements of each C checked\n\n",
		&o.size, &o.block, elements, o.seed, int64(o.size.m)*int64(o.size.n))
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

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

// attentionCheckCommand is "sparsek attention check".
type attentionCheckCommand struct {
	Batch       count          `group:"Attention" default:"1" placeholder:"N" help:"Batches."`
	Heads       count          `group:"Attention" default:"4" placeholder:"N" help:"Heads of Q and O; some cases have as many of K and V, others one."`
	Seq         count          `group:"Attention" default:"512" placeholder:"N" help:"Queries, and as many keys."`
	HeadSize    count          `group:"Attention" default:"64" placeholder:"N" help:"Elements of a row of a head."`
	AnyOrder    bool           `group:"Attention" help:"The backward pass may add the parts of the gradient of Q in any order."`
	Seed        uint64         `group:"Attention" placeholder:"N" help:"Of the layouts and the values (default: 0)."`
	DType       headsDTypeFlag `name:"dtype" group:"Attention" default:"bf16" placeholder:"TYPE" help:"Element type of Q, K, V, O and the gradients: bf16, fp16, fp32 or fp64; or e4m3 of Q, K and V, with a random scale for each head, an O of bf16, and no backward pass."`
	engineFlags `group:"Device and kernel"`
	Kernel      string `group:"Device and kernel" placeholder:"NAME" help:"A kernel by name (default: the library chooses)."`
	jsonFlag
}

func (*attentionCheckCommand) Help() string {
	return `Examples:
  sparsek attention check
  sparsek attention check --seq 1000 --head-size 96 --dtype fp32 --device cpu`
}

// cases have each rule, layouts of one and of several heads, and heads that share keys.
func (o *attentionCheckCommand) cases() []workload.Attention {
	heads, window := int(o.Heads), max(1, int(o.Seq)/8)
	list := []workload.Attention{
		{HeadsK: heads, Pattern: workload.AllBlocks},
		{HeadsK: heads, Pattern: workload.AllBlocks, Causal: true},
		{HeadsK: 1, Pattern: workload.AllBlocks, Causal: true, Window: window},
		{HeadsK: 1, Pattern: workload.AllBlocks, Window: window},
		{HeadsK: heads, Pattern: "random", Density: 0.25, BlockQ: 64, BlockK: 64, LayoutHeads: heads},
		{HeadsK: 1, Pattern: "random", Density: 0.5, BlockQ: 128, BlockK: 64, Causal: true},
		{HeadsK: heads, Pattern: "window", Density: 0.25, BlockQ: 64, BlockK: 128},
	}
	for i := range list {
		list[i].Batch, list[i].HeadsQ, list[i].Seq, list[i].HeadSize, list[i].Seed = int(o.Batch), heads, int(o.Seq), int(o.HeadSize), o.Seed
		list[i].AnyOrder = o.AnyOrder
	}
	return list
}

// attentionCheckResult is what it prints as JSON.
type attentionCheckResult struct {
	Passed bool               `json:"passed"`
	Cases  []*attentionReport `json:"cases"`
}

// Run computes and checks.
func (o *attentionCheckCommand) Run(ctx context.Context, e *environment) (err error) {
	engine, err := o.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	cases := o.cases()
	bar := e.progress.Bar("attention check", int64(len(cases)), term.Count)
	var result attentionCheckResult
	var wrong, broken error
	for _, a := range cases {
		job := attentionJob{Attention: a, dtype: string(o.DType), kernel: o.Kernel, backward: true, ifServed: true, check: true, repeats: 1}
		r, err := job.run(ctx, engine)
		if r != nil {
			result.Cases = append(result.Cases, r)
		}
		if err != nil && exitCode(err) != exitWrongResult {
			broken = fmt.Errorf("%s: %w", a.Rules(), err)
			break
		}
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", a.Rules(), err))
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
	return errors.Join(failed, o.print(e, engine.Info(), result))
}

func (o *attentionCheckCommand) print(e *environment, c sparsek.EngineInfo, result attentionCheckResult) error {
	first := result.Cases[0]
	fmt.Fprintf(e.stdout, "back-end   %s\n", backendLine(c))
	fmt.Fprintf(e.stdout, "attention  %d x %d heads, %d queries and keys, head size %d, %s, seed %d\n", first.Batch, first.HeadsQ, first.Seq, first.HeadSize, first.DType, o.Seed)
	for _, p := range first.Passes {
		fmt.Fprintf(e.stdout, "%-10s %s\n", p.Pass, p.Kernel)
	}
	if len(first.Passes) == 1 {
		fmt.Fprintln(e.stdout, "backward   not served by this kernel")
	}
	fmt.Fprintln(e.stdout)
	t := &table{left: 4}
	t.add("", "key", "", "", "", "closest to")
	t.add("case", "heads", "blocks", "output", "wrong", "its bound")
	for _, r := range result.Cases {
		about := []string{r.Rules(), fmt.Sprint(r.HeadsK), ""}
		if r.BlockQ > 0 {
			about[2] = fmt.Sprintf("%dx%d", r.BlockQ, r.BlockK)
		}
		for _, k := range r.Check {
			t.add(append(about, k.Output, fmt.Sprint(k.Failures), k.closest())...)
			about = []string{"", "", ""}
		}
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	if result.Passed {
		fmt.Fprintln(e.stdout, "\nattention check: every element is within its error bound")
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/internal/sys/stats"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// attentionCommand is "sparsek attention".
type attentionCommand struct {
	Run   attentionRunCommand   `cmd:"" help:"Compute attention over a layout by name, and time it."`
	Check attentionCheckCommand `cmd:"" help:"Compute attention with each rule, forward and backward, and check every element of the results."`
}

func (*attentionCommand) Help() string {
	return `Examples:
  sparsek attention run --heads 32 --seq 16384 --pattern random --density 0.25
  sparsek attention check --device cpu`
}

// attentionRunCommand is "sparsek attention run".
type attentionRunCommand struct {
	Batch        count      `group:"Attention" default:"1" placeholder:"N" help:"Batches."`
	Heads        count      `group:"Attention" default:"8" placeholder:"N" help:"Heads of Q and O."`
	KVHeads      count      `name:"kv-heads" group:"Attention" placeholder:"N" help:"Heads of K and V, a divisor of --heads (default: as many)."`
	Seq          count      `group:"Attention" default:"2048" placeholder:"N" help:"Queries, and as many keys."`
	HeadSize     count      `group:"Attention" default:"128" placeholder:"N" help:"Elements of a row of a head."`
	Pattern      string     `group:"Attention" default:"dense" placeholder:"NAME" help:"The layout: dense (every block), ${patterns}. All but dense are of whole blocks: add --causal for what causal hides within one."`
	Block        *blockFlag `group:"Attention" placeholder:"BQxBK" help:"Blocks of the layout, queries by keys; one number stands for both (default: 128x128)."`
	densityFlags `group:"Attention"`
	LayoutHeads  count          `group:"Attention" placeholder:"N" help:"How many layouts there are, a divisor of --heads; neighbouring heads share one (default: 1)."`
	Causal       bool           `group:"Attention" help:"A query sees no key behind its own place."`
	Window       count          `group:"Attention" placeholder:"N" help:"A query sees N keys before its own place and, without --causal, N behind it."`
	SoftCap      positive       `group:"Attention" placeholder:"NUMBER" help:"Bound scores: NUMBER tanh(score / NUMBER)."`
	AnyOrder     bool           `group:"Attention" help:"The backward pass may add the parts of the gradient of Q in any order: faster on a GPU; its last bits then differ from call to call."`
	Seed         uint64         `group:"Attention" placeholder:"N" help:"Of the layout and the values (default: 0)."`
	DType        headsDTypeFlag `name:"dtype" group:"Attention" default:"bf16" placeholder:"TYPE" help:"Element type of Q, K, V, O and the gradients: bf16, fp16, fp32 or fp64; or e4m3 of Q, K and V, with a random scale for each head, an O of bf16, and no backward pass."`
	engineFlags  `group:"Device and kernel"`
	Kernel       string `group:"Device and kernel" placeholder:"NAME" help:"A kernel by name (default: the library chooses)."`
	Repeats      count  `group:"Device and kernel" placeholder:"N" help:"Timed calls (default: 5 on the CPU, 30 on a GPU)."`
	Backward     bool   `group:"Output" help:"Compute and time the gradients of Q, K and V, too."`
	CheckAll     bool   `name:"check" group:"Output" help:"Compare every element of the results with a float64 reference."`
	jsonFlag
}

func (*attentionRunCommand) Help() string {
	return `Examples:
  sparsek attention run --causal --seq 4096 --heads 16 --kv-heads 4
  sparsek attention run --pattern random --density 0.25 --block 64 --layout-heads 8 --backward`
}

// defaultAttentionBlock is that of layouts.
var defaultAttentionBlock = blockFlag{128, 128}

// attention is what the flags say, or why they do not go together.
func (o *attentionRunCommand) attention(e *environment) (workload.Attention, error) {
	a := workload.Attention{Batch: int(o.Batch), HeadsQ: int(o.Heads), HeadsK: int(o.KVHeads), Seq: int(o.Seq), HeadSize: int(o.HeadSize), Pattern: o.Pattern,
		LayoutHeads: int(o.LayoutHeads), Causal: o.Causal, Window: int(o.Window), SoftCap: float64(o.SoftCap), AnyOrder: o.AnyOrder, Seed: o.Seed}
	if a.HeadsK == 0 {
		a.HeadsK = a.HeadsQ
	}
	if o.Backward && string(o.DType) == workload.Float8E4M3.Name {
		return a, failf(exitUsage, "attention run: --backward with --dtype %s: it has the forward pass alone, take another type", o.DType)
	}
	if a.HeadsQ%a.HeadsK != 0 {
		return a, failf(exitUsage, "attention run: --kv-heads %d is no divisor of --heads %d", a.HeadsK, a.HeadsQ)
	}
	if a.Pattern == workload.AllBlocks {
		for _, name := range []string{"block", "density", "sparsity", "layout-heads"} {
			if e.given[name] {
				return a, failf(exitUsage, "attention run: --%s is for a --pattern of blocks: %s has every one", name, a.Pattern)
			}
		}
		return a, nil
	}
	uses, err := pattern.UsesDensity(a.Pattern)
	if err != nil {
		return a, failf(exitUsage, "attention run: there is no pattern %q: take one of %s", a.Pattern, strings.Join(workload.PatternNames(), ", "))
	}
	if !uses && o.given() != "" {
		return a, failf(exitUsage, "attention run: pattern %s has its own density: leave out --%s", a.Pattern, o.given())
	}
	if uses {
		a.Density = o.value(defaultDensity)
	}
	if a.LayoutHeads > 0 && a.HeadsQ%a.LayoutHeads != 0 {
		return a, failf(exitUsage, "attention run: --layout-heads %d is no divisor of --heads %d", a.LayoutHeads, a.HeadsQ)
	}
	block := defaultAttentionBlock
	if o.Block != nil {
		block = *o.Block
	}
	a.BlockQ, a.BlockK = block.m, block.k
	return a, nil
}

// Run computes.
func (o *attentionRunCommand) Run(ctx context.Context, e *environment) (err error) {
	a, err := o.attention(e)
	if err != nil {
		return err
	}
	engine, err := o.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	job := attentionJob{Attention: a, dtype: string(o.DType), kernel: o.Kernel, backward: o.Backward, check: o.CheckAll, repeats: int(o.Repeats)}
	bar := e.progress.Step("attention run")
	r, err := job.run(ctx, engine)
	bar.End(err)
	if r == nil {
		return err
	}
	if o.JSON {
		return errors.Join(err, printJSON(e.stdout, r))
	}
	return errors.Join(err, printAttention(e, r, engine.Info()))
}

// attentionJob is attention that is computed once, checked and timed.
type attentionJob struct {
	workload.Attention
	dtype, kernel   string
	backward, check bool
	ifServed        bool // the backward pass is left out where the kernel has none
	repeats         int  // 0: by the back-end
}

func (j attentionJob) run(ctx context.Context, engine *sparsek.Engine) (*attentionReport, error) {
	if err := j.checkMemory(engine.Info().Backend); err != nil {
		return nil, err
	}
	switch j.dtype {
	case "bf16":
		return runAttention[sparsek.BFloat16, sparsek.BFloat16, float32](ctx, engine, j)
	case "fp16":
		return runAttention[sparsek.Float16, sparsek.Float16, float32](ctx, engine, j)
	case "fp64":
		return runAttention[float64, float64, float64](ctx, engine, j)
	case "e4m3":
		return runAttention[sparsek.Float8E4M3, sparsek.BFloat16, float32](ctx, engine, j)
	}
	return runAttention[float32, float32, float32](ctx, engine, j)
}

// checkMemory counts the operands on the host.
func (j attentionJob) checkMemory(backend sparsek.Backend) error {
	element := headsDTypeFlag(j.dtype).bytes()
	index, err := j.IndexBytes()
	if err != nil {
		return fail(exitUsage, err)
	}
	random := float64(element+max(element, 2)) * (float64(j.Batch) * float64(j.HeadsQ) * float64(j.Seq) * float64(j.HeadSize))
	needs := []need{{"random numbers and a result", random}, {"the layout", index}}
	if backend != sparsek.CUDA {
		needs = append(needs, need{"the operands", j.Bytes(element, j.backward)})
	}
	return checkMemory(availableMemory(), needs...)
}

func runAttention[T, O, S sparsek.Element](ctx context.Context, engine *sparsek.Engine, j attentionJob) (report *attentionReport, err error) {
	host := workload.RandomB[T](1, j.RandomElements(), j.Seed).Data
	r, err := workload.NewAttentionRun[T, O, S](ctx, engine, j.Attention, j.kernel, j.backward, host)
	if j.ifServed && j.backward && errors.Is(err, sparsek.ErrNoSuchKernel) {
		j.backward = false
		r, err = workload.NewAttentionRun[T, O, S](ctx, engine, j.Attention, j.kernel, false, host)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.Compute(ctx); err != nil {
		return nil, err
	}
	report = newAttentionReport(j, r.Info(), engine.Info())
	for _, backward := range slices.Compact([]bool{false, j.backward}) {
		times, err := j.time(ctx, engine, r.Time, backward)
		if err != nil {
			return nil, err
		}
		report.Passes = append(report.Passes, newPassReport(j, times, backward, r.Info()))
	}
	if !j.check {
		return report, nil
	}
	checked, err := r.Check(ctx)
	if err != nil {
		return nil, fmt.Errorf("check the result: %w", err)
	}
	return report, report.add(checked)
}

// time times passes after those that Compute ran.
func (j attentionJob) time(ctx context.Context, engine *sparsek.Engine, timer func(context.Context, bool, int, int) ([]time.Duration, error), backward bool) (stats.Summary[time.Duration], error) {
	repeats, between := 5, 0
	if engine.Info().Backend == sparsek.CUDA {
		repeats, between = 30, 1
	}
	if j.repeats > 0 {
		repeats = j.repeats
	}
	times, err := timer(ctx, backward, between, repeats)
	return stats.Summarise(times), err
}

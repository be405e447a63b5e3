// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/stats"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// attentionReport describes one attention, as JSON and in words.
type attentionReport struct {
	workload.Attention
	DType string `json:"dtype"`

	Blocks  int64   `json:"blocks"`  // that are computed, over all batches and heads
	Partial int64   `json:"partial"` // of these, blocks that a rule or the end of the sequence cuts
	Pairs   int64   `json:"pairs"`   // a query and a key that it sees
	Kept    float64 `json:"kept"`    // share of all pairs

	Backend       string       `json:"backend"`
	BackendReason string       `json:"backend_reason"`
	Passes        []passReport `json:"passes"`

	Check []outputCheck `json:"check,omitempty"`
}

// passReport is a forward or a backward pass.
type passReport struct {
	Pass      string     `json:"pass"` // "forward" or "backward"
	Kernel    string     `json:"kernel"`
	Runs      int        `json:"runs"`
	Seconds   float64    `json:"seconds"` // the median
	Quartiles [2]float64 `json:"seconds_quartiles"`

	Effective       float64 `json:"effective_tflops"`        // operations on pairs
	DenseEquivalent float64 `json:"dense_equivalent_tflops"` // of all blocks without a window
}

// outputCheck is the check of an output. A row is ((batch * heads) + head) * queries + query.
type outputCheck struct {
	Output string `json:"output"`
	check
}

func newAttentionReport(j attentionJob, info sparsek.AttentionInfo, c sparsek.EngineInfo) *attentionReport {
	return &attentionReport{Attention: j.Attention, DType: j.dtype, Blocks: info.Blocks, Partial: info.PartialBlocks, Pairs: info.Pairs,
		Kept: float64(info.Pairs) / j.AllPairs(), Backend: backendName(c), BackendReason: c.Reason}
}

func newPassReport(j attentionJob, t stats.Summary[time.Duration], backward bool, info sparsek.AttentionInfo) passReport {
	p := passReport{Pass: "forward", Kernel: info.Kernel, Runs: t.Runs, Seconds: t.Median.Seconds(), Quartiles: [2]float64{t.Quarter.Seconds(), t.ThreeQuarters.Seconds()},
		Effective: rate(j.FLOP(float64(info.Pairs), backward), t.Median), DenseEquivalent: rate(j.FLOP(j.DensePairs(), backward), t.Median)}
	if backward {
		p.Pass, p.Kernel = "backward", info.Backward
	}
	return p
}

// add takes over what was checked. The error is a wrong result, with its place.
func (r *attentionReport) add(checked []workload.AttentionChecked) error {
	var wrong error
	for _, one := range checked {
		r.Check = append(r.Check, outputCheck{one.Output.String(), *newCheck(one.Report)})
		if one.Failures > 0 && wrong == nil {
			wrong = failf(exitWrongResult, "%v: %w", one.Output, wrongResult(one.Report))
		}
	}
	return wrong
}

func printAttention(e *environment, r *attentionReport, c sparsek.EngineInfo) error {
	t := &table{left: 2}
	heads := fmt.Sprintf("%d x %d heads", r.Batch, r.HeadsQ)
	if r.HeadsK != r.HeadsQ {
		heads += fmt.Sprintf(" (%d of K and V)", r.HeadsK)
	}
	t.add("attention", fmt.Sprintf("%s, %d queries and keys, head size %d, %s", heads, r.Seq, r.HeadSize, r.DType))
	t.add("layout", r.layoutText())
	t.add("rules", r.rulesText())
	t.add("computed", fmt.Sprintf("%d blocks, of which %d are cut; %s of all pairs of a query and a key", r.Blocks, r.Partial, percent(r.Kept)))
	t.add("back-end", backendLine(c))
	for _, p := range r.Passes {
		t.add(p.Pass, fmt.Sprintf("%s, the median of %d (quartiles %s and %s)", formatSeconds(p.Seconds), p.Runs, formatSeconds(p.Quartiles[0]), formatSeconds(p.Quartiles[1])))
		t.add("", fmt.Sprintf("%s effective TFLOP/s, %s dense-equivalent TFLOP/s, by %s", digits(p.Effective), digits(p.DenseEquivalent), p.Kernel))
	}
	for i, k := range r.Check {
		title := ""
		if i == 0 {
			title = "check"
		}
		verdict := fmt.Sprintf("all %d elements are within their bounds", k.Elements)
		if k.Failures > 0 {
			verdict = fmt.Sprintf("%d of %d elements are WRONG", k.Failures, k.Elements)
		}
		t.add(title, fmt.Sprintf("%s: %s; closest to its bound: %s", k.Output, verdict, k.closest()))
	}
	return t.print(e.stdout)
}

func (r *attentionReport) layoutText() string {
	if r.Pattern == workload.AllBlocks {
		return "every block"
	}
	text := fmt.Sprintf("%s, blocks of %dx%d, seed %d", r.Pattern, r.BlockQ, r.BlockK, r.Seed)
	if r.LayoutHeads > 1 {
		text += fmt.Sprintf(", %d layouts", r.LayoutHeads)
	}
	return text
}

func (r *attentionReport) rulesText() string {
	var rules []string
	if r.Causal {
		rules = append(rules, "causal")
	}
	if r.Window > 0 {
		rules = append(rules, fmt.Sprintf("a window of %d keys", r.Window))
	}
	if r.SoftCap > 0 {
		rules = append(rules, fmt.Sprintf("scores bounded by %g", r.SoftCap))
	}
	if r.AnyOrder {
		rules = append(rules, "gradients of Q in any order")
	}
	return or(strings.Join(rules, ", "), "none")
}

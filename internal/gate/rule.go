// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"math"

	"github.com/sparsek/sparsek/internal/gate/ncu"
)

// direction is where a metric gets better.
type direction int

const (
	neither direction = iota // it is reported and never fails
	higher
	lower
)

// directions of all metrics. The time goes with the clocks of the day and is reported beside the cycles. More registers
// or another occupancy are no loss by themselves: where they cost something the cycles show it.
var directions = map[string]direction{
	"sm_active": higher, "tensor_core": higher, "dram_bw": higher,
	"cycles": lower, "l2_bytes": lower, "spill_loads": lower, "spill_stores": lower,
	"duration_ns": neither, "registers": neither, "occupancy": neither, "dram_bytes": neither,
}

// always are the metrics that no gain elsewhere makes up for. The others say how the work was done: a faster kernel may
// take a smaller share of the memory's rate, or more bytes.
var always = map[string]bool{"cycles": true, "spill_loads": true, "spill_stores": true}

const (
	// limit is the share by which a metric may get worse, where its noise is not larger.
	limit = 0.05
	// faster is the share of cycles that must have been gained, at least, for a kernel to count as faster.
	faster = 0.01
	// resolution is that of the normal form: a difference of two values of which each was rounded to two decimals.
	resolution = 0.01
)

// largeDrift is the share by which a metric must be worse for a difference that nothing explains to be more than a note.
const largeDrift = 0.10

// unexplained takes back what was found against a metric of a case whose machine code and plan did not change.
func (m *Metric) unexplained() {
	large := max(largeDrift, m.Limit)
	switch {
	case m.Verdict != Fail && m.Verdict != Ambiguous:
		return
	case m.Second == nil && m.Worse > large: // to be measured again
		return
	case m.Second != nil && min(m.Worse, worsening(directions[m.Name], m.Baseline, *m.Second)) > large:
		m.Verdict = Drift
	default:
		m.Verdict = Pass
	}
	m.Note = "worse, though neither machine code nor plan changed"
}

// Metric is the comparison of one metric of a case.
type Metric struct {
	Name     string   `json:"name"`
	Baseline float64  `json:"baseline"`
	First    float64  `json:"first"`
	Second   *float64 `json:"second,omitempty"`
	Worse    float64  `json:"worse"` // share of the baseline by which the first is worse; negative: better
	Limit    float64  `json:"limit"` // 0: the metric is only reported
	Verdict  Verdict  `json:"verdict,omitempty"`
	Note     string   `json:"note,omitempty"`
}

// Gated says whether the metric can fail.
func (m *Metric) Gated() bool { return m.Limit > 0 }

// limitOf is the share by which a metric with that noise floor may get worse.
func limitOf(noise float64) float64 { return max(limit, noise) }

// worsening is the share of the baseline by which a value is worse. From a baseline of 0 any change is one by all of it.
func worsening(d direction, baseline, value float64) float64 {
	change := value - baseline
	if d == higher {
		change = -change
	}
	if math.Abs(change) <= resolution {
		return 0
	}
	if baseline == 0 {
		return math.Copysign(1, change)
	}
	return change / math.Abs(baseline)
}

// isFaster says whether the cycles got fewer by more than their noise.
func isFaster(e *Entry, figures ncu.Figures) bool {
	return -worsening(lower, e.Figures["cycles"], figures["cycles"]) >= max(faster, e.Noise["cycles"])
}

// degraded says whether a metric got worse by more than its limit; excused: it did, and the kernel is faster.
func degraded(e *Entry, name string, figures ncu.Figures) (bad, excused bool) {
	d := directions[name]
	if d == neither || worsening(d, e.Figures[name], figures[name]) <= limitOf(e.Noise[name]) {
		return false, false
	}
	if !always[name] && isFaster(e, figures) {
		return false, true
	}
	return true, false
}

// compare judges one metric by one measurement, or by two. spread is the larger distance of the quartiles of the
// launches of a measurement.
func compare(e *Entry, name string, first, second ncu.Figures, spread float64) Metric {
	m := Metric{Name: name, Baseline: e.Figures[name], First: first[name]}
	d := directions[name]
	if d == neither {
		m.Worse = worsening(lower, m.Baseline, m.First)
		return m
	}
	m.Worse, m.Limit, m.Verdict = worsening(d, m.Baseline, m.First), limitOf(e.Noise[name]), Pass
	if second != nil {
		v := second[name]
		m.Second = &v
	}
	bad, excused := degraded(e, name, first)
	switch {
	case excused:
		m.Note = "worse, but the kernel is faster"
	case !bad && -m.Worse > m.Limit:
		m.Note = "better than the baseline: bless it, so that it is not lost"
	case bad && second == nil:
		m.Verdict, m.Note = Ambiguous, "worse, and not measured a second time"
	case bad:
		again, _ := degraded(e, name, second)
		switch {
		case !again:
			m.Note = "worse once, not the second time"
		case spread > math.Abs(m.First-m.Baseline):
			m.Verdict = Ambiguous
			m.Note = fmt.Sprintf("worse twice, but the launches of one measurement are %.4g apart, more than that", spread)
		default:
			m.Verdict = Fail
		}
	}
	return m
}

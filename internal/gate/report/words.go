// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/pair"
)

// number writes a figure with the two decimals of the normal form, and whole ones without.
func number(v float64) string {
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// percent writes a share that is gained or lost.
func percent(share float64) string {
	text := fmt.Sprintf("%+.1f %%", 100*share)
	if text == "+0.0 %" || text == "-0.0 %" {
		return "0.0 %"
	}
	return text
}

// change says how a metric moved, as a share of the baseline.
func change(m *gate.Metric) string {
	text := percent(math.Abs(m.Worse))
	switch {
	case !m.Gated(): // it has no better side: more is +
		return percent(m.Worse)
	case text == "0.0 %":
		return "the same"
	case m.Worse > 0:
		return text[1:] + " worse"
	}
	return text[1:] + " better"
}

// figures writes baseline and measurements of a metric.
func figures(m *gate.Metric) string {
	text := number(m.Baseline) + " -> " + number(m.First)
	if m.Second != nil {
		text += ", again " + number(*m.Second)
	}
	return text
}

// sentence says all of a metric.
func sentence(m *gate.Metric) string {
	text := fmt.Sprintf("%s %s (%s", m.Name, figures(m), change(m))
	if m.Gated() {
		text += fmt.Sprintf(", limit %.1f %%", 100*m.Limit)
	}
	text += ")"
	if m.Note != "" {
		text += ": " + m.Note
	}
	return text
}

// metric finds one of a case; nil where the case was not measured.
func metric(c *gate.Case, name string) *gate.Metric {
	for i := range c.Metrics {
		if c.Metrics[i].Name == name {
			return &c.Metrics[i]
		}
	}
	return nil
}

// matters says whether a metric is worth a line: it did not pass, or there is something to say.
func matters(m *gate.Metric) bool {
	return m.Note != "" || m.Gated() && m.Verdict != gate.Pass
}

// details are the lines to say of a case, the worst first; none where it passed and nothing moved.
func details(c *gate.Case) []string {
	var lines []string
	for _, line := range []string{c.Why, pairSentence(c), c.Note} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	if c.Cause != "" {
		lines = append(lines, "cause: "+c.Cause)
	}
	for i := range c.Metrics {
		if matters(&c.Metrics[i]) || c.Paired != nil {
			lines = append(lines, sentence(&c.Metrics[i]))
		}
	}
	if len(c.Code) > 0 {
		lines = append(lines, "instructions: "+instructions(c.Code))
	}
	return lines
}

// instructions writes differences: "HGMMA 4 -> 2, LDS 1 -> 9".
func instructions(list []gate.Difference) string {
	var words []string
	for _, d := range list {
		words = append(words, fmt.Sprintf("%s %d -> %d", d.Opcode, d.Was, d.Is))
	}
	return strings.Join(words, ", ")
}

// ratio writes a ratio of times with its interval.
func ratio(i *pair.Interval) string {
	return fmt.Sprintf("%.4f (%.4f to %.4f)", i.Ratio, i.Low, i.High)
}

// pairSentence says how a case compares with the blessed library, where that is worth a line; else it is empty.
func pairSentence(c *gate.Case) string {
	p := c.Paired
	if p == nil || c.Verdict == gate.Pass && c.Note == "" && !p.Slower {
		return ""
	}
	text := "time divided by that of the blessed library: " + ratio(&p.First)
	if p.Second != nil {
		text += ", again " + ratio(p.Second)
	}
	return text
}

// heading says what was measured and compared with what.
func heading(r *gate.Result) string {
	var parts []string
	if r.GPU != "" {
		text := r.GPU
		for _, one := range [][2]string{{"driver", r.Driver}, {"ncu", r.NCU}, {"commit", short(r.Commit)}} {
			if one[1] != "" {
				text += ", " + one[0] + " " + one[1]
			}
		}
		parts = append(parts, text)
	}
	if b := r.Baseline; b != nil {
		text := fmt.Sprintf("baseline of %s, commit %s", b.Date.Format("2006-01-02"), short(b.Commit))
		if b.Paired {
			text = fmt.Sprintf("products in turn with those of the blessed library (%s, commit %s of %s)", short(b.Library), short(b.Commit),
				b.Date.Format("2006-01-02"))
		} else if b.Noise.Starts > 0 {
			text += fmt.Sprintf(", noise over %d runs and %d starts", b.Noise.Runs, b.Noise.Starts)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func short(commit string) string {
	if len(commit) > 12 {
		return commit[:12]
	}
	if commit == "" {
		return "unknown"
	}
	return commit
}

// meaning explains a verdict.
func meaning(v gate.Verdict) string {
	return map[gate.Verdict]string{
		gate.Pass:          "nothing got worse",
		gate.Intact:        "the baseline is as it was blessed; nothing was measured",
		gate.Stale:         "the baseline is of other machine code than the build gives: measure, then bless",
		gate.Ambiguous:     "something got worse, and it was not shown twice: measure again",
		gate.NotMeasurable: "there are no figures to judge by",
		gate.Drift:         "figures are far worse, though neither machine code nor plans changed: look at the machine",
		gate.Fail:          "something got worse twice, or the baseline was changed by hand",
	}[v]
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/pair"
)

// Terminal prints a table, what there is to say below it, and the verdict in the last line.
func Terminal(w io.Writer, r *gate.Result) error {
	var text strings.Builder
	if h := heading(r); h != "" {
		fmt.Fprintf(&text, "%s\n\n", h)
	}
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.StripEscape)
	switch {
	case paired(r):
		fmt.Fprintln(t, "case\tkernel\ttime\tblessed\tratio (99 % interval)\trounds\tverdict")
	case measured(r):
		fmt.Fprintln(t, "case\tkernel\tcycles\t\ttime\ttensor core\tverdict")
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		if p := c.Paired; p != nil {
			fmt.Fprintf(t, "%s\t%s\t%.4g us\t%.4g us\t%s\t%d\t%s\n", c.Name, c.Kernel, 1e6*p.Seconds[pair.Candidate],
				1e6*p.Seconds[pair.Blessed], ratio(&p.First), p.Rounds, c.Verdict)
		} else if cycles := metric(c, "cycles"); cycles != nil {
			time, tensor := metric(c, "duration_ns"), metric(c, "tensor_core")
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.4g us (%s)\t%s (%s)\t%s\n", c.Name, c.Kernel, number(cycles.First), percent(cycles.Worse),
				time.First/1e3, percent(time.Worse), number(tensor.First), percent(-tensor.Worse), c.Verdict)
		} else if c.Verdict != gate.Intact {
			fmt.Fprintf(t, "%s\t%s\t\t\t\t\t%s\n", c.Name, c.Kernel, c.Verdict)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Cases {
		for _, line := range details(&r.Cases[i]) {
			fmt.Fprintf(&text, "\n%s: %s", r.Cases[i].Name, line)
		}
	}
	for _, line := range append(append([]string{}, r.Reasons...), r.Notes...) {
		fmt.Fprintf(&text, "\n%s", line)
	}
	fmt.Fprintf(&text, "\n%s: %s\n", r.Verdict, meaning(r.Verdict))
	_, err := io.WriteString(w, strings.TrimLeft(text.String(), "\n"))
	return err
}

// paired says whether products took turns with those of the blessed library.
func paired(r *gate.Result) bool { return r.Baseline != nil && r.Baseline.Paired }

func measured(r *gate.Result) bool {
	for i := range r.Cases {
		if len(r.Cases[i].Metrics) > 0 || r.Cases[i].Paired != nil {
			return true
		}
	}
	return false
}

// Markdown writes what stands in a pull request: the verdict, what did not pass, and all cases folded away.
func Markdown(w io.Writer, r *gate.Result) error {
	var text strings.Builder
	fmt.Fprintf(&text, "## Profile gate: %s\n\n%s%s.\n", r.Verdict, strings.ToUpper(meaning(r.Verdict)[:1]), meaning(r.Verdict)[1:])
	if h := heading(r); h != "" {
		fmt.Fprintf(&text, "\n%s.\n", h)
	}
	for _, line := range append(append([]string{}, r.Reasons...), r.Notes...) {
		fmt.Fprintf(&text, "\n- %s", escape(line))
	}
	if len(r.Reasons)+len(r.Notes) > 0 {
		text.WriteString("\n")
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		lines := details(c)
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n**%s** (%s): %s\n\n", escape(c.Name), escape(c.Kernel), c.Verdict)
		for _, line := range lines {
			fmt.Fprintf(&text, "- %s\n", escape(line))
		}
	}
	if paired(r) {
		text.WriteString("\n<details><summary>All cases</summary>\n\n| case | kernel | time, us | blessed, us | ratio | 99 % interval | again | rounds | verdict |\n" +
			"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for i := range r.Cases {
			writePair(&text, &r.Cases[i])
		}
		text.WriteString("\n</details>\n")
	}
	if hasCounters(r) {
		text.WriteString("\n<details><summary>Counters</summary>\n\n| case | kernel | metric | baseline | measured | again | change | limit | verdict |\n" +
			"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
		for i := range r.Cases {
			for j := range r.Cases[i].Metrics {
				writeRow(&text, &r.Cases[i], &r.Cases[i].Metrics[j])
			}
		}
		text.WriteString("\n</details>\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func hasCounters(r *gate.Result) bool {
	return slices.ContainsFunc(r.Cases, func(c gate.Case) bool { return len(c.Metrics) > 0 })
}

func writePair(text *strings.Builder, c *gate.Case) {
	p := c.Paired
	if p == nil {
		return
	}
	second := ""
	if p.Second != nil {
		second = ratio(p.Second)
	}
	fmt.Fprintf(text, "| %s | %s | %.4g | %.4g | %.4f | %.4f to %.4f | %s | %d | %s |\n", escape(c.Name), escape(c.Kernel),
		1e6*p.Seconds[pair.Candidate], 1e6*p.Seconds[pair.Blessed], p.First.Ratio, p.First.Low, p.First.High, second, p.Rounds, c.Verdict)
}

func writeRow(text *strings.Builder, c *gate.Case, m *gate.Metric) {
	second, limit, verdict := "", "", string(m.Verdict)
	if m.Second != nil {
		second = number(*m.Second)
	}
	if m.Gated() {
		limit = fmt.Sprintf("%.1f %%", 100*m.Limit)
	} else {
		verdict = "reported"
	}
	fmt.Fprintf(text, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", escape(c.Name), escape(c.Kernel), m.Name,
		number(m.Baseline), number(m.First), second, change(m), limit, verdict)
}

// escape keeps text from being Markdown or HTML.
func escape(text string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", "&", "&amp;", "*", "\\*", "`", "\\`", "[", "\\[", "\n", " ").Replace(text)
}

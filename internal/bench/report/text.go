// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// Text writes a table for a terminal, with the method below.
func Text(w io.Writer, r *bench.Report) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", r.Title())
	if s := State(r); s != "" {
		fmt.Fprintf(&out, "%s\n", s)
	}
	out.WriteString("\n")
	t := &humanize.Table{Left: 4}
	t.Add("", "", "", "", "", "", "effective", "dense-equivalent", "")
	t.Add("case", "MxNxK", "pattern", "kernel", "median", "spread", "TFLOP/s", "TFLOP/s", "speed-up")
	for _, c := range r.Cases {
		for i, one := range c.Timed {
			lead := []string{"", "", "", one.Name}
			if i == 0 {
				source := c.Pattern
				if c.Matrix != "" {
					source = "file"
				}
				lead = []string{c.Name, size(c), source + " " + humanize.Percent(c.Density), one.Kernel}
			}
			t.Add(append(lead, humanize.Seconds(one.Seconds), humanize.Percent(one.Spread), humanize.Digits(one.Effective),
				humanize.Digits(one.DenseEquivalent), speedUp(one.SpeedUp))...)
		}
	}
	if err := t.Print(&out); err != nil {
		return err
	}
	if len(r.BreakEven) > 0 {
		out.WriteString("\nbreak-even\n")
		even := &humanize.Table{Left: 3}
		for _, b := range r.BreakEven {
			even.Add("  "+block(b.BlockM, b.BlockK), "with "+b.Against, breakEven(b))
		}
		if err := even.Print(&out); err != nil {
			return err
		}
	}
	for _, note := range notes(r) {
		fmt.Fprintf(&out, "\n%s\n", note)
	}
	fmt.Fprintf(&out, "\n%s\n", strings.Join(r.Method, "\n"))
	_, err := io.WriteString(w, out.String())
	return err
}

// grid is the table with all columns, of which the first row is the heading.
func grid(r *bench.Report) [][]string {
	rows := [][]string{{"case", "MxNxK", "block", "type", "pattern", "by", "kernel", "median", "spread", "effective TFLOP/s",
		"dense-equivalent TFLOP/s", "speed-up of ours", "SM clock, MHz", "slowed down by"}}
	for _, c := range r.Cases {
		for _, one := range c.Timed {
			clock, why := "", ""
			if c.After.Known {
				clock, why = fmt.Sprintf("%.0f", c.After.SMClock), c.Before.Merge(c.After).Slowed()
			}
			rows = append(rows, []string{c.Name, size(c), block(c.BlockM, c.BlockK), c.DType, c.Source() + ", " + humanize.Percent(c.Density), one.Name,
				one.Kernel, humanize.Seconds(one.Seconds), humanize.Percent(one.Spread), humanize.Digits(one.Effective),
				humanize.Digits(one.DenseEquivalent), speedUp(one.SpeedUp), clock, why})
		}
	}
	return rows
}

// Markdown writes a table with all columns, below what it takes to measure it again, and the method.
func Markdown(w io.Writer, r *bench.Report) error {
	var out strings.Builder
	fmt.Fprintf(&out, "`%s`: commit %s, %s%s, %s.\n\n", r.Command, r.Commit, r.Device, driver(r), r.Date)
	if s := State(r); s != "" {
		fmt.Fprintf(&out, "**%s**\n\n", s)
	}
	if err := markdownTable(&out, grid(r)); err != nil {
		return err
	}
	if len(r.BreakEven) > 0 {
		out.WriteString("\n")
		rows := [][]string{{"block", "against", "break-even"}}
		for _, b := range r.BreakEven {
			rows = append(rows, []string{block(b.BlockM, b.BlockK), b.Against, breakEven(b)})
		}
		if err := markdownTable(&out, rows); err != nil {
			return err
		}
	}
	out.WriteString("\n")
	for _, line := range append(notes(r), r.Method...) {
		fmt.Fprintf(&out, "- %s\n", oneLine(line))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func driver(r *bench.Report) string {
	if r.Driver == "" {
		return ""
	}
	return ", driver " + r.Driver
}

// markdownTable writes cells as they are, whatever they hold.
func markdownTable(w io.Writer, rows [][]string) error {
	t := &humanize.Table{}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.ReplaceAll(oneLine(cell), "|", `\|`)
		}
		t.Add(cells...)
	}
	return t.Markdown(w)
}

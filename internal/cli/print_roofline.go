// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
)

// printRoofline prints a table for a terminal.
func printRoofline(w io.Writer, r *rooflineResult) error {
	if _, err := fmt.Fprintf(w, "%s, driver %s, commit %s\n\n", r.GPU, r.Driver, r.Commit); err != nil {
		return fail(exitBadOutput, err)
	}
	t := &table{left: 1}
	t.add("", "", "", "effective", "to", "of", "", "of", "cuBLAS", "cuBLAS", "rate of", "speed-", "plan, us:")
	t.add("case", "time", "spread", "TFLOP/s", "reach", "reach", "bound", "bound", "time", "TFLOP/s", "cuBLAS", "up", "host, GPU")
	for i := range r.Cases {
		c := &r.Cases[i]
		t.add(append(c.cells(), fmt.Sprintf("%.0f, %.0f", c.PlanSeconds*1e6, c.DevicePlan*1e6))...)
	}
	if err := t.print(w); err != nil {
		return err
	}
	return r.printNotes(w)
}

// cells are the columns that both kinds of table have.
func (r *rooflineReport) cells() []string {
	reach, ofReach := "", ""
	if r.ReachTFLOPs > 0 {
		reach, ofReach = digits(r.ReachTFLOPs), wholePercent(r.OfReach)
	}
	fraction := wholePercent(r.Fraction)
	if r.WrongBound {
		fraction += "!"
	}
	dense := []string{"", "", "", ""}
	if d := r.Dense; d != nil {
		dense = []string{formatSeconds(d.Seconds), digits(d.TFLOPs), wholePercent(d.RateShare), digits(d.SpeedUp)}
	}
	cells := []string{r.Name, formatSeconds(r.Seconds), percent(r.Spread), digits(r.Effective), reach, ofReach, r.Bounds[0].Name, fraction}
	return append(cells, dense...)
}

func wholePercent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// printNotes says what the table does not.
func (r *rooflineResult) printNotes(w io.Writer) error {
	var notes []string
	for i := range r.Cases {
		if r.Cases[i].WrongBound {
			notes = append(notes, "! faster than the bound allows: the bound is wrong")
			break
		}
	}
	if r.NoDense != "" {
		notes = append(notes, "no comparison with dense products, and tensor bounds from the data sheet: "+r.NoDense)
	}
	for _, f := range r.Failed {
		notes = append(notes, f.Name+" has no result: "+f.Error)
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "\n%s\n", note); err != nil {
			return fail(exitBadOutput, err)
		}
	}
	return nil
}

// printRooflineMarkdown prints a table with all there is, under what it takes to measure it again.
func printRooflineMarkdown(w io.Writer, r *rooflineResult) error {
	rows := [][]string{
		{"case", "MxNxK", "block", "pattern", "kernel", "time", "spread", "effective TFLOP/s", "reach", "of reach", "bound", "of bound",
			"cuBLAS dense, time", "cuBLAS TFLOP/s", "effective rate / cuBLAS's", "speed-up over dense", "plan, on the host", "plan, on the GPU"},
		nil,
	}
	for range rows[0] {
		rows[1] = append(rows[1], "---")
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		cells := c.cells()
		size, block := sizeFlag{c.M, c.N, c.K}, blockFlag{c.BlockM, c.BlockK}
		name := c.Pattern
		if c.Shuffled {
			name += ", rows shuffled"
		}
		row := []string{c.Name, size.String(), block.String(), name + ", " + percent(c.Density), c.Kernel}
		row = append(row, cells[1:4]...)
		row = append(row, c.Reach)
		row = append(row, cells[5:]...)
		rows = append(rows, append(row, formatSeconds(c.PlanSeconds), formatSeconds(c.DevicePlan)))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "`%s`: commit %s, %s, driver %s, %s, bf16. Medians of %d rounds in which a case and cuBLAS take turns.\n\n",
		r.Command, r.Commit, r.GPU, r.Driver, r.Date, r.Rounds)
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fail(exitBadOutput, err)
	}
	return r.printNotes(w)
}

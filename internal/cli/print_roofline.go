// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
)

// printRoofline prints a table for a terminal.
func printRoofline(w io.Writer, r *rooflineResult) error {
	if _, err := fmt.Fprintf(w, "%s, %.0f TFLOP/s at most, driver %s, commit %s\n\n", r.GPU, r.Peak, r.Driver, r.Commit); err != nil {
		return fail(exitBadOutput, err)
	}
	t := &table{left: 1}
	t.add("", "", "", "effective", "to", "of", "", "of", "cuBLAS", "cuBLAS", "rate of", "speed-", "plan, us:")
	t.add("case", "time", "spread", "TFLOP/s", "reach", "reach", "bound", "bound", "time", "TFLOP/s", "cuBLAS", "up", "host, GPU")
	for i := range r.Cases {
		for _, row := range r.Cases[i].rows() {
			plan := ""
			if row.planned {
				plan = fmt.Sprintf("%.0f, %.0f", r.Cases[i].PlanSeconds*1e6, r.Cases[i].DevicePlan*1e6)
			}
			t.add(append(row.cells(), plan)...)
		}
	}
	if err := t.print(w); err != nil {
		return err
	}
	return r.printNotes(w)
}

// rooflineRow is a row of the table.
type rooflineRow struct {
	name    string
	times   timeReport
	bound   string
	dense   *denseReport // nil: nothing to compare with
	planned bool         // shows the times of the plan, which another row of the case does not
}

// rows are one of launched products and, where there are some, one of products in a graph, with names that tell which is
// which. cuBLAS's product is launched, and so compared with launched ones.
func (r *rooflineReport) rows() []rooflineRow {
	launched := rooflineRow{r.Name, r.timeReport, r.Bounds[0].Name, r.Dense, true}
	if r.InGraph == nil {
		return []rooflineRow{launched}
	}
	launched.name += " launch"
	return []rooflineRow{{r.Name + " graph", r.InGraph.timeReport, r.Bounds[0].Name, nil, false}, launched}
}

// cells are the columns that both kinds of table have.
func (row rooflineRow) cells() []string {
	t := row.times
	reach, ofReach := "", ""
	if t.ReachTFLOPs > 0 {
		reach, ofReach = digits(t.ReachTFLOPs), wholePercent(t.OfReach)
	}
	fraction := wholePercent(t.Fraction)
	if t.WrongBound {
		fraction += "!"
	}
	dense := []string{"", "", "", ""}
	if d := row.dense; d != nil {
		dense = []string{formatSeconds(d.Seconds), digits(d.TFLOPs), wholePercent(d.RateShare), digits(d.SpeedUp)}
		if d.RateTie {
			dense[2] = "tie"
		}
		if d.Tie {
			dense[3] = "tie"
		}
	}
	cells := []string{row.name, formatSeconds(t.Seconds), percent(t.Spread), digits(t.Effective), reach, ofReach, row.bound, fraction}
	return append(cells, dense...)
}

func wholePercent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// printNotes says what the table does not.
func (r *rooflineResult) printNotes(w io.Writer) error {
	var notes []string
	for i := range r.Cases {
		if r.Cases[i].InGraph != nil {
			notes = append(notes, "graph: a product's share of the time of a CUDA graph of many; launch: a product that is launched by itself")
			break
		}
	}
	for i := range r.Cases {
		if c := &r.Cases[i]; c.WrongBound || c.InGraph != nil && c.InGraph.WrongBound {
			notes = append(notes, "! faster than the bound allows: the bound is wrong")
			break
		}
	}
	if r.NoDense != "" {
		notes = append(notes, "no comparison with dense products: "+r.NoDense)
	}
	for _, note := range []string{r.Interrupted, r.Clocks} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	for _, f := range r.Failed {
		notes = append(notes, f.Name+" has no result: "+f.Error)
	}
	for _, note := range append(notes, strings.Join(r.Method, "\n")) {
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
		size, block := sizeFlag{c.M, c.N, c.K}, blockFlag{c.BlockM, c.BlockK}
		name := c.Pattern
		if c.Shuffled {
			name += ", rows shuffled"
		}
		for _, row := range c.rows() {
			cells := row.cells()
			line := []string{cells[0], size.String(), block.String(), name + ", " + percent(c.Density), c.Kernel}
			line = append(line, cells[1:4]...)
			line = append(line, row.times.Reach)
			line = append(line, cells[5:]...)
			if row.planned {
				line = append(line, formatSeconds(c.PlanSeconds), formatSeconds(c.DevicePlan))
			} else {
				line = append(line, "", "")
			}
			rows = append(rows, line)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "`%s`: commit %s, %s, driver %s, %s, bf16. Medians of %d rounds in which a case and cuBLAS take turns. "+
		"Tensor bounds at %.0f TFLOP/s, the chip's at its highest clock.\n\n",
		r.Command, r.Commit, r.GPU, r.Driver, r.Date, r.Rounds, r.Peak)
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fail(exitBadOutput, err)
	}
	return r.printNotes(w)
}

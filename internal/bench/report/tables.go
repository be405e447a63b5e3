// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// table is a table of a report, in any format.
type table struct {
	Title   string
	Same    string // what all rows have in common, in place of columns
	LeftOut string // columns, for want of room
	columns []column
}

// column is one of a table.
type column struct {
	heading string
	left    bool // aligned to the left
	// Where a table is too wide, columns are left out, those with the lowest number first; 0: never.
	leave int
	// Where all rows have the same, the column is left out and said once.
	once  bool
	cells []string
}

// build makes a table of rows: a cell of a column for each. Columns without any text are left out.
func build[R any](title string, rows []R, columns []column, cells ...func(R) string) table {
	t := table{Title: title}
	var same []string
	for i, c := range columns {
		for _, row := range rows {
			c.cells = append(c.cells, oneLine(cells[i](row)))
		}
		switch {
		case !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" }):
		case c.once && len(rows) > 1 && len(distinct(c.cells)) == 1:
			same = append(same, strings.ReplaceAll(c.heading, "\n", " ")+" "+distinct(c.cells)[0])
		default:
			t.columns = append(t.columns, c)
		}
	}
	t.Same = strings.Join(same, ", ")
	return t
}

// distinct are the texts of cells that have some, each once.
func distinct(cells []string) []string {
	var list []string
	for _, cell := range cells {
		if cell != "" && !slices.Contains(list, cell) {
			list = append(list, cell)
		}
	}
	return list
}

// Heading are the names of the columns.
func (t table) Heading() []column { return t.columns }

// Name and Left are for templates.
func (c column) Name() string { return c.heading }
func (c column) Left() bool   { return c.left }

// Cell is one of a row.
type cell struct {
	Text string
	Left bool
}

// Rows are the cells, row by row.
func (t table) Rows() [][]cell {
	if len(t.columns) == 0 {
		return nil
	}
	rows := make([][]cell, len(t.columns[0].cells))
	for i := range rows {
		for _, c := range t.columns {
			rows[i] = append(rows[i], cell{c.cells[i], c.left})
		}
	}
	return rows
}

// width is how many columns of a terminal it takes.
func (t table) width() int {
	total := 0
	for i, c := range t.columns {
		if i > 0 {
			total += 2
		}
		widest := 0
		for _, text := range append(strings.Split(c.heading, "\n"), c.cells...) {
			widest = max(widest, utf8.RuneCountInString(text))
		}
		total += widest
	}
	return total
}

// fit leaves out columns until the table is at most so wide; 0: as wide as it is. It gives the names of those left out.
func (t table) fit(width int) (fitted table, left []string) {
	t.columns = slices.Clone(t.columns)
	for width > 0 && t.width() > width {
		least := -1
		for i, c := range t.columns {
			if c.leave > 0 && (least < 0 || c.leave < t.columns[least].leave) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		left = append(left, strings.ReplaceAll(t.columns[least].heading, "\n", " "))
		t.columns = slices.Delete(t.columns, least, least+1)
	}
	return t, left
}

// print writes it for a terminal. Headings of two lines stand above each other.
func (t table) print(w io.Writer, width int) error {
	fitted, left := t.fit(width)
	lines := 1
	for _, c := range fitted.columns {
		lines = max(lines, 1+strings.Count(c.heading, "\n"))
	}
	var out humanize.Table
	for line := range lines {
		var cells []string
		for _, c := range fitted.columns {
			parts := strings.Split(c.heading, "\n")
			parts = append(make([]string, lines-len(parts)), parts...) // at the bottom
			cells = append(cells, parts[line])
		}
		out.Add(cells...)
	}
	for _, row := range fitted.Rows() {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.Text)
		}
		out.Add(cells...)
	}
	for _, c := range fitted.columns {
		if !c.left {
			break
		}
		out.Left++
	}
	if t.Title != "" {
		fmt.Fprintf(w, "\n%s\n", t.Title)
	}
	if t.Same != "" {
		fmt.Fprintf(w, "all: %s\n", t.Same)
	}
	if err := out.Print(w); err != nil {
		return err
	}
	if len(left) > 0 {
		_, err := fmt.Fprintln(w, wrap("left out, as the terminal is narrow: "+strings.Join(left, ", "), width))
		return err
	}
	return nil
}

// markdown writes it as a table of Markdown.
func (t table) markdown(w io.Writer) error {
	if t.Title != "" {
		fmt.Fprintf(w, "\n**%s**", t.Title)
		if t.Same != "" {
			fmt.Fprintf(w, " (all: %s)", escape(t.Same))
		}
		fmt.Fprint(w, "\n\n")
	}
	var out humanize.Table
	var cells []string
	for _, c := range t.columns {
		cells = append(cells, escape(strings.ReplaceAll(c.heading, "\n", " ")))
	}
	out.Add(cells...)
	for _, row := range t.Rows() {
		cells = nil
		for _, c := range row {
			cells = append(cells, escape(c.Text))
		}
		out.Add(cells...)
	}
	return out.Markdown(w)
}

// escape keeps text from ending a cell.
func escape(text string) string { return strings.ReplaceAll(oneLine(text), "|", `\|`) }

// Columns that many tables have.
func caseColumn() column { return column{heading: "case", left: true} }

// entry is a row of what was timed in a case.
type entry struct {
	c *bench.Result
	t *bench.Timed
}

// entries are all that was timed, for which pick holds.
func entries(r *bench.Report, pick func(*bench.Timed) bool) []entry {
	var list []entry
	for _, c := range r.Cases {
		for i := range c.Timed {
			if pick(&c.Timed[i]) {
				list = append(list, entry{c, &c.Timed[i]})
			}
		}
	}
	return list
}

// about are the columns that say what a case is.
func about() ([]column, []func(*bench.Result) string) {
	return []column{
			caseColumn(), {heading: "MxNxK", left: true, leave: 3, once: true}, {heading: "block", left: true, leave: 4, once: true},
			{heading: "type", left: true, leave: 2, once: true}, {heading: "pattern", left: true, leave: 5, once: true},
			{heading: "stored", left: true, leave: 6, once: true}, {heading: "kernel", left: true, leave: 7, once: true},
		}, []func(*bench.Result) string{
			func(c *bench.Result) string { return c.Name }, size, func(c *bench.Result) string { return block(c.BlockM, c.BlockK) },
			func(c *bench.Result) string { return c.DType }, source, func(c *bench.Result) string { return humanize.Percent(c.Density) },
			func(c *bench.Result) string { return c.Kernel },
		}
}

// source is where A comes from; a file has its name in the first column.
func source(c *bench.Result) string {
	if c.Matrix != "" {
		return "file"
	}
	return c.Source()
}

// rateUnit is the unit of rates in tables, and how many of it a TFLOP/s has: a CPU's are small.
func rateUnit(r *bench.Report) (unit string, scale float64) {
	for _, e := range entries(r, func(*bench.Timed) bool { return true }) {
		if e.t.Effective >= 1 {
			return "TFLOP/s", 1
		}
	}
	return "GFLOP/s", 1000
}

// times is the table of all that was timed, a row each.
func times(r *bench.Report) table {
	unit, scale := rateUnit(r)
	columns, cells := about()
	var of []func(entry) string
	for _, cell := range cells {
		of = append(of, func(e entry) string {
			if e.t.Name != bench.Ours {
				return ""
			}
			return cell(e.c)
		})
	}
	columns = append(columns, column{heading: "by", left: true}, column{heading: "time"}, column{heading: "spread", leave: 9},
		column{heading: "effective\n" + unit}, column{heading: "dense-equiv.\n" + unit, leave: 1}, column{heading: "speed-up\nof ours"},
		column{heading: "SM clock\nMHz", leave: 2, once: true}, column{heading: "slowed\ndown by", leave: 1})
	of = append(of,
		func(e entry) string { return e.t.Name },
		func(e entry) string { return humanize.Seconds(e.t.Seconds) },
		func(e entry) string { return humanize.Percent(e.t.Spread) },
		func(e entry) string { return humanize.Digits(scale * e.t.Effective) },
		func(e entry) string { return humanize.Digits(scale * e.t.DenseEquivalent) },
		func(e entry) string { return speedUp(e.t.SpeedUp) },
		func(e entry) string {
			if !e.c.After.Known || e.t.Name != bench.Ours {
				return ""
			}
			return fmt.Sprintf("%.0f", e.c.After.SMClock)
		},
		func(e entry) string {
			if e.t.Name != bench.Ours {
				return ""
			}
			return e.c.Before.Merge(e.c.After).Slowed()
		})
	return build("", entries(r, func(*bench.Timed) bool { return true }), columns, of...)
}

// beside is the table with a row for each case, and each peer's time and speed-up beside ours.
func beside(r *bench.Report) table {
	unit, scale := rateUnit(r)
	columns, cells := about()
	ours := func(text func(*bench.Timed) string) func(*bench.Result) string {
		return func(c *bench.Result) string {
			if t := c.Find(bench.Ours); t != nil {
				return text(t)
			}
			return ""
		}
	}
	columns = append(columns, column{heading: "time"}, column{heading: "spread"}, column{heading: "effective " + unit})
	cells = append(cells, ours(func(t *bench.Timed) string { return humanize.Seconds(t.Seconds) }),
		ours(func(t *bench.Timed) string { return humanize.Percent(t.Spread) }),
		ours(func(t *bench.Timed) string { return humanize.Digits(scale * t.Effective) }))
	for _, name := range peerNames(r) {
		if name == bench.OursGraph && slices.ContainsFunc(r.Cases, func(c *bench.Result) bool { return len(c.Bounds) > 0 }) {
			continue // the table of bounds has it
		}
		of := func(text func(*bench.Timed) string) func(*bench.Result) string {
			return func(c *bench.Result) string {
				if t := c.Find(name); t != nil {
					return text(t)
				}
				return ""
			}
		}
		columns = append(columns, column{heading: name + ", time"}, column{heading: "speed-up"})
		cells = append(cells, of(func(t *bench.Timed) string { return humanize.Seconds(t.Seconds) }),
			of(func(t *bench.Timed) string { return speedUp(t.SpeedUp) }))
	}
	return build("Times", r.Cases, columns, cells...)
}

// longNames are those of peers in a table for people who do not know the program.
var longNames = []struct{ name, text string }{
	{bench.Torch, "torch BSR"}, {"cusparse_bsr", "cuSPARSE BSR"}, {"cusparse_bell", "cuSPARSE Blocked-ELL"}, {bench.CUBLAS, "cuBLAS, dense"},
	{bench.OpenBLAS, "OpenBLAS, dense"},
}

// compact is a table with one column for each peer: its time, and how many times as fast ours is.
func compact(r *bench.Report) table {
	columns := []column{{heading: "A, blocks stored"}, {heading: "block", once: true}, {heading: "MxNxK", once: true}, {heading: "sparsek"}}
	cells := []func(*bench.Result) string{
		func(c *bench.Result) string { return source(c) + ", " + humanize.Percent(c.Density) },
		func(c *bench.Result) string { return block(c.BlockM, c.BlockK) }, size,
		func(c *bench.Result) string {
			if t := c.Find(bench.Ours); t != nil {
				return humanize.Seconds(t.Seconds)
			}
			return ""
		},
	}
	for _, peer := range longNames {
		columns = append(columns, column{heading: peer.text})
		cells = append(cells, func(c *bench.Result) string {
			t := c.Find(peer.name)
			switch {
			case t == nil:
				return ""
			case t.SpeedUp == nil || t.SpeedUp.Tie:
				return humanize.Seconds(t.Seconds) + " (tie)"
			}
			return fmt.Sprintf("%s (%sx)", humanize.Seconds(t.Seconds), humanize.Digits(t.SpeedUp.Ratio))
		})
	}
	return build("Time, and in brackets how many times as fast sparsek is", r.Cases, columns, cells...)
}

// peerNames are those that took turns with ours, in their order.
func peerNames(r *bench.Report) []string {
	var names []string
	for _, c := range r.Cases {
		for _, t := range c.Timed {
			if t.Name != bench.Ours && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// bounds is the table of what the chip allows and what is wanted; ok is false where the bounds are not known.
func bounds(r *bench.Report) (t table, ok bool) {
	rows := entries(r, func(t *bench.Timed) bool { return t.OfBound > 0 })
	launched := func(e entry) bool { return e.t.Name == bench.Ours }
	goal := func(e entry) bench.Goal {
		if e.t.Goal == nil {
			return bench.Goal{}
		}
		return *e.t.Goal
	}
	t = build("Goals, bounds and plans", rows, []column{
		caseColumn(), {heading: "", left: true}, {heading: "effective\nTFLOP/s"}, {heading: "goal", leave: 2}, {heading: "of\ngoal"},
		{heading: "bound"}, {heading: "of\nbound"}, {heading: "rate of\ndense", leave: 3}, {heading: "plan on\nhost", leave: 1}, {heading: "plan on\nGPU", leave: 1},
	},
		func(e entry) string { return e.c.Name },
		func(e entry) string {
			switch {
			case e.t.Name == bench.OursGraph:
				return "graph"
			case e.c.Find(bench.OursGraph) != nil:
				return "launch"
			}
			return ""
		},
		func(e entry) string { return humanize.Digits(e.t.Effective) },
		func(e entry) string { return goal(e).Text },
		func(e entry) string { return wholePercent(goal(e).Reached) },
		func(e entry) string { return e.c.Bounds[0].Name },
		func(e entry) string {
			if e.t.OfBound > 1 {
				return wholePercent(e.t.OfBound) + "!"
			}
			return wholePercent(e.t.OfBound)
		},
		func(e entry) string {
			dense := e.c.Find(bench.CUBLAS)
			if dense == nil || !launched(e) {
				return ""
			}
			return wholePercent(e.t.Effective / dense.DenseEquivalent)
		},
		func(e entry) string { return planTime(launched(e), e.c.PlanSeconds) },
		func(e entry) string { return planTime(launched(e), e.c.DevicePlanSeconds) })
	return t, len(rows) > 0
}

func planTime(launched bool, seconds float64) string {
	if !launched || seconds == 0 {
		return ""
	}
	return humanize.Seconds(seconds)
}

func wholePercent(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// sustained is the table of products that ran without a pause; ok is false where none did.
func sustained(r *bench.Report) (t table, ok bool) {
	rows := entries(r, func(t *bench.Timed) bool { return t.Sustained != nil })
	unit, scale := rateUnit(r)
	digits := func(v float64) string {
		if v == 0 {
			return ""
		}
		return humanize.Digits(v)
	}
	t = build(fmt.Sprintf("Sustained load, %g s without a pause", r.Sustained), rows, []column{
		caseColumn(), {heading: "by", left: true}, {heading: "rested\n" + unit}, {heading: "sustained\n" + unit}, {heading: "speed-up\nof ours"},
		{heading: "power\nW", leave: 3}, {heading: "mJ a\nproduct"}, {heading: "TFLOP/s\na watt"},
		{heading: "SM clock\nMHz", leave: 2, once: true}, {heading: "slowed\ndown by", leave: 1},
	},
		func(e entry) string {
			if e.t.Name != bench.Ours {
				return ""
			}
			return e.c.Name
		},
		func(e entry) string { return e.t.Name },
		func(e entry) string { return digits(scale * rate(e.t, e.t.Effective, e.t.DenseEquivalent)) },
		func(e entry) string {
			return digits(scale * rate(e.t, e.t.Sustained.Effective, e.t.Sustained.DenseEquivalent))
		},
		func(e entry) string { return digits(e.t.Sustained.SpeedUp) },
		func(e entry) string { return digits(e.t.Sustained.Watts) },
		func(e entry) string { return digits(1e3 * e.t.Sustained.Joules) },
		func(e entry) string { return digits(e.t.Sustained.EffectivePerWatt) },
		func(e entry) string {
			if !e.t.Sustained.State.Known {
				return ""
			}
			return fmt.Sprintf("%.0f", e.t.Sustained.State.SMClock)
		},
		func(e entry) string { return e.t.Sustained.State.Slowed() })
	return t, len(rows) > 0
}

// rate is the one of two that counts the operations which t does: a dense product does all.
func rate(t *bench.Timed, effective, dense float64) float64 {
	if t.Dense {
		return dense
	}
	return effective
}

// breakEvens is the table of break-evens; ok is false where there are none. A suite whose densities were not chosen for
// it has none: two densities far apart do not locate a break-even.
func breakEvens(r *bench.Report) (t table, ok bool) {
	t = build("Break-even: the share of stored blocks up to which ours is faster", r.BreakEven, []column{
		{heading: "block", left: true}, {heading: "against", left: true}, {heading: "break-even", left: true},
	},
		func(b bench.BreakEven) string { return block(b.BlockM, b.BlockK) },
		func(b bench.BreakEven) string { return b.Against },
		breakEven)
	return t, len(r.BreakEven) > 0 && r.Suite != bench.Roofline
}

// tables are those of a report: the first is of times, `first` or that of the suite.
func tables(r *bench.Report, first table) []table {
	list := []table{first}
	switch r.Suite {
	case bench.PeerTable:
		return list
	case bench.Shared:
		list[0] = held(r)
	}
	for _, make := range []func(*bench.Report) (table, bool){bounds, sustained, breakEvens} {
		if t, ok := make(r); ok {
			list = append(list, t)
		}
	}
	return list
}

// noise says that times are rough; "" where they are not.
func noise(r *bench.Report) string {
	all := entries(r, func(*bench.Timed) bool { return true })
	if len(all) == 0 {
		return ""
	}
	worst := slices.MaxFunc(all, func(a, b entry) int { return cmp.Compare(a.t.Spread, b.t.Spread) })
	if worst.t.Spread < bench.Noisy {
		return ""
	}
	return fmt.Sprintf("the machine was busy: spreads up to %s (%s in %s), figures are rough", humanize.Percent(worst.t.Spread), worst.t.Name, worst.c.Name)
}

// names says how each peer calls itself.
func names(r *bench.Report) []string {
	var list []string
	for _, e := range entries(r, func(t *bench.Timed) bool {
		return t.Name != bench.Ours && t.Name != bench.OursGraph && t.Held == 0 && t.Kernel != t.Name
	}) {
		if text := e.t.Name + ": " + e.t.Kernel; e.t.Kernel != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

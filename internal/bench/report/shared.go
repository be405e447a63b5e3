// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strconv"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/chart"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// heldRow is a case while so many SMs are held.
type heldRow struct {
	c    *bench.Result
	held int
}

// find gives what was timed of one that is `name` where no SM is held; nil where it was not.
func (row heldRow) find(name string) *bench.Timed {
	for i := range row.c.Timed {
		t := &row.c.Timed[i]
		if t.Held == row.held && (t.Of == name || row.held == 0 && t.Name == name) {
			return t
		}
	}
	return nil
}

// heldRows are those of a report: of cases that were timed while SMs were held.
func heldRows(r *bench.Report) []heldRow {
	var rows []heldRow
	for _, c := range r.Cases {
		counts := []int{0}
		for _, t := range c.Timed {
			if !slices.Contains(counts, t.Held) {
				counts = append(counts, t.Held)
			}
		}
		if len(counts) == 1 {
			continue
		}
		slices.Sort(counts)
		for _, n := range counts {
			rows = append(rows, heldRow{c, n})
		}
	}
	return rows
}

// heldNames are those that were timed while SMs were held, by their names where none is.
func heldNames(r *bench.Report) []string {
	var names []string
	for _, e := range entries(r, func(t *bench.Timed) bool { return t.Held > 0 }) {
		if !slices.Contains(names, e.t.Of) {
			names = append(names, e.t.Of)
		}
	}
	return names
}

// held is the table of products while SMs are held: a row for each case and number of SMs.
func held(r *bench.Report) table {
	columns, about := about(r)
	var cells []func(heldRow) string
	for _, cell := range about {
		cells = append(cells, func(row heldRow) string {
			if row.held > 0 {
				return ""
			}
			return cell(row.c)
		})
	}
	columns, cells = append(columns, column{heading: "SMs held"}), append(cells, func(row heldRow) string { return strconv.Itoa(row.held) })
	for _, name := range heldNames(r) {
		of := func(text func(*bench.Timed) string) func(heldRow) string {
			return func(row heldRow) string {
				if t := row.find(name); t != nil {
					return text(t)
				}
				return ""
			}
		}
		columns = append(columns, column{heading: name + "\ntime"}, column{heading: name + "\nspread", leave: 1}, column{heading: name + "\nratio to 0"})
		cells = append(cells, of(func(t *bench.Timed) string { return humanize.Seconds(t.Seconds) }),
			of(func(t *bench.Timed) string { return humanize.Percent(t.Spread) }),
			of(func(t *bench.Timed) string {
				if t.Slowdown == nil {
					return ""
				}
				return humanize.Digits(t.Slowdown.Ratio)
			}))
	}
	columns, cells = append(columns, column{heading: "speed-up\nof ours"}), append(cells, func(row heldRow) string {
		for _, name := range heldNames(r) {
			if t := row.find(name); t != nil && t.SpeedUp != nil {
				return speedUp(t.SpeedUp)
			}
		}
		return ""
	})
	return build("Times while another kernel holds SMs", heldRows(r), columns, cells...)
}

// heldPicture has the ratio of each product's time to that with no SM held, by the number of SMs.
func heldPicture(r *bench.Report) (*picture, error) {
	rows := heldRows(r)
	if len(rows) == 0 {
		return nil, nil
	}
	p := newPicture(r, "held", "Time while another kernel holds SMs", "SMs held", "time / time with no SM held")
	most, lines := 0.0, 0
	for _, c := range r.Cases {
		for _, name := range heldNames(r) {
			alone := c.Find(name)
			if alone == nil || alone.Seconds <= 0 {
				continue
			}
			line := curve{name: c.Name + ", " + name, dashed: name != bench.Ours}
			for _, row := range rows {
				if t := row.find(name); row.c == c && t != nil {
					ratio := t.Seconds / alone.Seconds
					line.points = append(line.points, chart.Point{X: float64(row.held), Y: ratio})
					line.whiskers = append(line.whiskers, around(t, ratio, func(seconds float64) float64 { return seconds / alone.Seconds }))
					most = max(most, float64(row.held))
				}
			}
			p.addLine(line, lines)
			lines++
		}
	}
	p.plot.X.Ticks = func(float64, float64) []chart.Tick { return heldTicks(rows) }
	p.plot.X.Min, p.plot.X.Max = -most/20, most*1.05
	p.plot.Y.Min = min(p.plot.Y.Min, 1)
	p.addRule([]chart.Point{{X: p.plot.X.Min, Y: 1}, {X: p.plot.X.Max, Y: 1}}, grey, true)
	return p, nil
}

// heldTicks marks the numbers of SMs that were held.
func heldTicks(rows []heldRow) []chart.Tick {
	var list []chart.Tick
	for _, row := range rows {
		if one := (chart.Tick{Value: float64(row.held), Label: strconv.Itoa(row.held)}); !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

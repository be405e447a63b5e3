// SPDX-License-Identifier: Apache-2.0

package shapemap

import (
	"slices"
	"sort"

	"github.com/sparsek/sparsek/internal/sys/stats"
)

// Figure is one of the figures that a map shows.
type Figure struct {
	Name  string // of its files
	Title string
	Of    func(*Cell) (float64, bool)
	// Worse orders two values, the worse first; Fair is the value that a cell should come to.
	Worse func(a, b float64) bool
	Fair  float64
}

func less(a, b float64) bool { return a < b }
func more(a, b float64) bool { return a > b }

// Figures are all that there are.
var Figures = []Figure{
	{"bound", "Share of the bound", (*Cell).OfBound, less, 0.35},
	{"rival", "Time of the best rival over ours", (*Cell).OfRival, less, 0.95},
	{"choice", "Time of the chosen kernel over that of our fastest", (*Cell).OfChoice, more, 1.3},
}

// Summary is a figure over all cells of a type.
type Summary struct {
	DType  string  `json:"dtype"`
	Figure string  `json:"figure"`
	Cells  int     `json:"cells"` // of which the figure is known
	Worst  float64 `json:"worst"`
	Median float64 `json:"median"`
	Fair   float64 `json:"fair"`  // what each cell should come to
	Below  int     `json:"below"` // cells that are worse
}

// DTypes are the types on a map, in the order of Types.
func (m *Map) DTypes() (list []string) {
	for _, t := range Types {
		if slices.ContainsFunc(m.Cells, func(c Cell) bool { return c.DType == t }) {
			list = append(list, t)
		}
	}
	return list
}

// Summaries are those of each type and figure that some cells have.
func (m *Map) Summaries() (list []Summary) {
	for _, dtype := range m.DTypes() {
		for _, f := range Figures {
			s := Summary{DType: dtype, Figure: f.Title, Fair: f.Fair}
			var values []float64
			for i := range m.Cells {
				if v, ok := f.Of(&m.Cells[i]); ok && m.Cells[i].DType == dtype {
					values = append(values, v)
					if f.Worse(v, f.Fair) {
						s.Below++
					}
				}
			}
			if len(values) == 0 {
				continue
			}
			sort.Slice(values, func(a, b int) bool { return f.Worse(values[a], values[b]) })
			s.Cells, s.Worst, s.Median = len(values), values[0], stats.Median(values)
			list = append(list, s)
		}
	}
	return list
}

// WorstCells are the cells that are worse than a figure's Fair, the worst first, at most so many.
func (m *Map) WorstCells(f Figure, most int) (list []*Cell) {
	value := func(c *Cell) float64 { v, _ := f.Of(c); return v }
	for i := range m.Cells {
		if v, ok := f.Of(&m.Cells[i]); ok && f.Worse(v, f.Fair) {
			list = append(list, &m.Cells[i])
		}
	}
	sort.SliceStable(list, func(a, b int) bool { return f.Worse(value(list[a]), value(list[b])) })
	return list[:min(most, len(list))]
}

// Failures are the cells without a time.
func (m *Map) Failures() (list []*Cell) {
	for i := range m.Cells {
		if m.Cells[i].Failed != "" {
			list = append(list, &m.Cells[i])
		}
	}
	return list
}

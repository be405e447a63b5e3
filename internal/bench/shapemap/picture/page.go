// SPDX-License-Identifier: Apache-2.0

package picture

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/sparsek/sparsek/internal/bench/shapemap"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

//go:embed page.html.in
var pageText string

var page = template.Must(template.New("map").Funcs(template.FuncMap{"digits": humanize.Digits}).Parse(pageText))

// mostListed is how many cells of a kind the page lists at most.
const mostListed = 40

// heatMap is a picture in the page.
type heatMap struct {
	Name, Title string
	SVG         template.HTML
}

// list is a table of cells in the page.
type list struct {
	Title string
	Rows  []row
}

type row struct{ DType, Pattern, Block, N, Kernel, Time, Best, BestTime, Value string }

// Page writes a page that needs nothing but itself.
func Page(w io.Writer, m *shapemap.Map) error {
	var maps []heatMap
	for _, dtype := range m.DTypes() {
		for _, f := range figuresOf(m, dtype) {
			// SVG escapes the texts that it draws.
			maps = append(maps, heatMap{Name(f, dtype), f.Title + ", " + dtype, template.HTML(SVG(m, f, dtype))})
		}
	}
	var lists []list
	for _, f := range shapemap.Figures[1:] {
		if rows := rowsOf(m, f); len(rows) > 0 {
			lists = append(lists, list{fmt.Sprintf("%s: the worst beyond %g", f.Title, f.Fair), rows})
		}
	}
	return page.Execute(w, struct {
		*shapemap.Map
		Summary  []shapemap.Summary
		Maps     []heatMap
		Lists    []list
		Failures []*shapemap.Cell
		Method   []string
	}{m, m.Summaries(), maps, lists, m.Failures(), Method(m.Backend)})
}

// Name is that of a picture's file, without its ending.
func Name(f shapemap.Figure, dtype string) string { return "map-" + f.Name + "-" + dtype }

// figuresOf are those that are known of some cells of a type.
func figuresOf(m *shapemap.Map, dtype string) (list []shapemap.Figure) {
	for _, f := range shapemap.Figures {
		if slices.ContainsFunc(m.Cells, func(c shapemap.Cell) bool {
			_, ok := f.Of(&c)
			return ok && c.DType == dtype
		}) {
			list = append(list, f)
		}
	}
	return list
}

// Pictures are all of a map, as SVG, by the names of their files.
func Pictures(m *shapemap.Map) map[string]string {
	all := map[string]string{}
	for _, dtype := range m.DTypes() {
		for _, f := range figuresOf(m, dtype) {
			all[Name(f, dtype)+".svg"] = SVG(m, f, dtype)
		}
	}
	return all
}

func rowsOf(m *shapemap.Map, f shapemap.Figure) (rows []row) {
	for _, c := range m.WorstCells(f, mostListed) {
		best := c.BestOfOurs()
		if f.Name == "rival" {
			best = c.BestRival()
		}
		v, _ := f.Of(c)
		rows = append(rows, row{c.DType, c.Pattern, fmt.Sprint(c.Block), fmt.Sprint(c.N), c.Kernel, humanize.Seconds(c.Seconds),
			best.Name, humanize.Seconds(best.Seconds), humanize.Digits(v)})
	}
	return rows
}

// Method says how the figures were measured, a sentence each.
func Method(backend string) []string {
	list := []string{
		"Each matrix has square blocks and comes from its pattern's name and the seed; values are random, from [-1, 1).",
		"The kernel is that which the library chooses without a tuning cache and without allow_dense. All kernels that serve, and those of other libraries, are measured in turn by the library's tuner: medians.",
		"A result is compared with float64 in three block rows where operands are small enough; other cells are timed only.",
	}
	if backend == "CPU" {
		return append(list, "64 MB are written before each product, so that caches are cold.")
	}
	return append(list,
		"Twice the size of L2 is read before each product, so that it is cold. The GPU is not rested between products.",
		"The bound is the longer of two times: of reading A's blocks and index and the rows of B that they meet once, and writing C once, at the rate of device memory; and of the operations on stored blocks at the highest rate of the chip, in fp32 a sixth of that in bf16, in fp64 a sixteenth.",
		"Rivals: cuSPARSE and cuBLAS, on the same matrix, as far as they serve.")
}

// SPDX-License-Identifier: Apache-2.0

// Package picture draws maps: heat maps as SVG, and a page of them.
package picture

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/bench/shapemap"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// Points, in the unit of the picture.
const (
	cellWidth, cellHeight = 38, 17
	leftOfPanel           = 34 // names of the rows
	aboveHeatMap          = 34 // of the panel: its name and those of the columns
	betweenPanels         = 18
	panelsInRow           = 3
	titleHeight           = 40
	scaleHeight           = 34
	fontSize              = 10
)

// SVG draws one figure of all cells of a type: a panel for each pattern, with a row for each block and a column for each
// N. Cells that were not measured stay empty. The text is UTF-8.
func SVG(m *shapemap.Map, f shapemap.Figure, dtype string) string {
	var blocks, columns []int
	var patterns []string
	for _, c := range m.Cells {
		if c.DType != dtype {
			continue
		}
		blocks, columns, patterns = add(blocks, c.Block), add(columns, c.N), add(patterns, c.Pattern)
	}
	slices.Sort(blocks)
	slices.Sort(columns)
	patterns = slices.DeleteFunc(shapemap.PatternNames(), func(name string) bool { return !slices.Contains(patterns, name) })

	panelWidth := leftOfPanel + cellWidth*len(columns) + betweenPanels
	panelHeight := aboveHeatMap + cellHeight*len(blocks) + betweenPanels
	inRow := min(panelsInRow, max(1, len(patterns)))
	width := max(560, panelWidth*inRow)
	height := titleHeight + panelHeight*((len(patterns)+inRow-1)/inRow) + scaleHeight

	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="%d">`,
		width, height, width, height, fontSize)
	d.printf(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	d.text(8, 16, "start", 13, "#000", fmt.Sprintf("%s, %s", f.Title, dtype))
	d.text(8, 31, "start", fontSize, "#444", subtitle(m))
	for i, name := range patterns {
		d.group(i%inRow*panelWidth, titleHeight+i/inRow*panelHeight)
		d.panel(m, f, dtype, name, blocks, columns)
		d.printf("</g>")
	}
	d.group(8, height-scaleHeight+8)
	d.scale(f)
	d.printf("</g></svg>\n")
	return d.String()
}

func subtitle(m *shapemap.Map) string {
	var of []string
	sources := m.Sources()
	for _, s := range sources {
		commit := s.Commit
		if len(commit) > 12 {
			commit = commit[:12]
		}
		text := fmt.Sprintf("sparsek %s, commit %s, %s, %s", s.Version, commit, s.Device, s.Date)
		if len(sources) > 1 {
			text += fmt.Sprintf(" (%d cells)", s.Count)
		}
		of = append(of, text)
	}
	return strings.Join(of, "; ") + ". Rows: blocks; columns: N."
}

func add[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *drawing) group(x, y int) { d.printf(`<g transform="translate(%d %d)">`, x, y) }

func (d *drawing) text(x, y int, anchor string, size int, fill, text string) {
	d.printf(`<text x="%d" y="%d" text-anchor="%s" font-size="%d" fill="%s">%s</text>`, x, y, anchor, size, fill, html.EscapeString(text))
}

func (d *drawing) panel(m *shapemap.Map, f shapemap.Figure, dtype, pattern string, blocks, columns []int) {
	d.text(leftOfPanel, 12, "start", 11, "#000", pattern)
	for i, n := range columns {
		d.text(leftOfPanel+i*cellWidth+cellWidth/2, aboveHeatMap-5, "middle", fontSize, "#444", fmt.Sprint(n))
	}
	for j, block := range blocks {
		y := aboveHeatMap + j*cellHeight
		d.text(leftOfPanel-4, y+12, "end", fontSize, "#444", fmt.Sprint(block))
		for i, n := range columns {
			d.cell(leftOfPanel+i*cellWidth, y, m.Find(shapemap.Key{DType: dtype, Pattern: pattern, Block: block, N: n}), f)
		}
	}
}

func (d *drawing) cell(x, y int, c *shapemap.Cell, f shapemap.Figure) {
	v, known := 0., false
	if c != nil {
		v, known = f.Of(c)
	}
	fill := "#f2f2f2"
	if known {
		fill = colour(f, v).hex()
	}
	d.printf(`<g><rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="#fff"/>`, x, y, cellWidth, cellHeight, fill)
	if known {
		d.text(x+cellWidth/2, y+12, "middle", fontSize, colour(f, v).ink(), label(f, v))
	} else if c != nil && c.Failed != "" {
		d.text(x+cellWidth/2, y+12, "middle", fontSize, "#b00", "!")
	}
	if c != nil {
		d.printf("<title>%s</title>", html.EscapeString(tip(c)))
	}
	d.printf("</g>")
}

// label is a value as a cell shows it.
func label(f shapemap.Figure, v float64) string {
	if f.Name == shapemap.Figures[0].Name {
		return fmt.Sprintf("%.0f%%", 100*v)
	}
	switch {
	case v >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// tip is what a browser shows of a cell beneath the pointer.
func tip(c *shapemap.Cell) string {
	text := fmt.Sprintf("%s, %s, block %d, N = %d: %d x %d, %d blocks", c.DType, c.Pattern, c.Block, c.N, c.M, c.K, c.Blocks)
	if c.Failed != "" {
		return text + "\n" + c.Failed
	}
	text += fmt.Sprintf("\n%s %s", c.Kernel, humanize.Seconds(c.Seconds))
	if c.Bound > 0 {
		text += fmt.Sprintf("\nbound (%s) %s", c.Binds, humanize.Seconds(c.Bound))
	}
	for _, t := range c.Timed {
		if t.Name != c.Kernel {
			text += fmt.Sprintf("\n%s %s", t.Name, humanize.Seconds(t.Seconds))
		}
	}
	return text
}

// scale shows which colours stand for which values.
func (d *drawing) scale(f shapemap.Figure) {
	values := []float64{0.1, 0.25, 0.5, 0.8, 0.95, 1, 1.25, 2, 4, 10}
	switch f.Name {
	case "bound":
		values = []float64{0.02, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1}
	case "choice":
		values = []float64{1, 1.05, 1.15, 1.3, 1.6, 2, 4, 10}
	}
	for i, v := range values {
		c := colour(f, v)
		d.printf(`<rect x="%d" y="0" width="%d" height="%d" fill="%s"/>`, i*cellWidth, cellWidth, cellHeight, c.hex())
		d.text(i*cellWidth+cellWidth/2, 12, "middle", fontSize, c.ink(), label(f, v))
	}
}

type rgb [3]float64

func (c rgb) hex() string {
	return fmt.Sprintf("#%02x%02x%02x", int(math.Round(c[0])), int(math.Round(c[1])), int(math.Round(c[2])))
}

// ink is the colour of text that can be read on c.
func (c rgb) ink() string {
	if 0.299*c[0]+0.587*c[1]+0.114*c[2] < 140 {
		return "#fff"
	}
	return "#000"
}

// The ends and the middle of the colours, which people with colour vision deficiency can distinguish, too.
var (
	bad, fair, good = rgb{178, 60, 10}, rgb{247, 247, 247}, rgb{5, 90, 160}
)

// colour gives values that are worse than Fair one colour, and better ones the other, the stronger the farther from it:
// by logarithms, which are equal for a factor and its inverse.
func colour(f shapemap.Figure, v float64) rgb {
	best, worst := 10*f.Fair, f.Fair/10
	switch f.Name {
	case "bound":
		best = 1
	case "choice":
		best, worst = 1, 10
	}
	share := math.Log(v/f.Fair) / math.Log(best/f.Fair)
	end := good
	if f.Worse(v, f.Fair) {
		share, end = math.Log(v/f.Fair)/math.Log(worst/f.Fair), bad
	}
	share = math.Sqrt(min(1, max(0, share))) // so that small differences from Fair are seen
	var out rgb
	for i := range out {
		out[i] = fair[i] + share*(end[i]-fair[i])
	}
	return out
}

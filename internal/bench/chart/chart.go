// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Point is a pair of values, one of each axis.
type Point struct{ X, Y float64 }

// Layer is something that a chart shows.
type Layer interface {
	// Extent is the smallest rectangle with all values; low is above high where there are none.
	Extent() (low, high Point)
	// Draw draws it. at gives the place of a point on the canvas, which is that of the data alone.
	Draw(c draw.Canvas, at func(Point) vg.Point)
}

// Sampler is a layer that a legend can show a sample of.
type Sampler interface {
	Layer
	Sample(c draw.Canvas)
}

// Chart is two axes and layers over them, of which the later ones lie above the earlier ones.
type Chart struct {
	Title   string // lines
	X, Y    Axis
	layers  []Layer
	entries []entry
}

// entry is a line of the legend.
type entry struct {
	name    string
	samples []Sampler
}

// New is a chart without layers.
func New(title, x, y string) *Chart {
	none := Axis{Min: math.Inf(1), Max: math.Inf(-1)}
	c := &Chart{Title: title, X: none, Y: none}
	c.X.Label, c.Y.Label = x, y
	return c
}

// Add adds layers, and widens the axes to their extents.
func (c *Chart) Add(layers ...Layer) {
	for _, l := range layers {
		low, high := l.Extent()
		c.X.Min, c.X.Max = min(c.X.Min, low.X), max(c.X.Max, high.X)
		c.Y.Min, c.Y.Max = min(c.Y.Min, low.Y), max(c.Y.Max, high.Y)
	}
	c.layers = append(c.layers, layers...)
}

// AddNamed adds layers that the legend has one name for.
func (c *Chart) AddNamed(name string, layers ...Sampler) {
	for _, l := range layers {
		c.Add(l)
	}
	c.entries = append(c.entries, entry{name, layers})
}

const (
	textSize   = 9  // points, as all that follow
	gap        = 4  // between things that stand side by side
	tickLength = 5  // of a mark
	sampleSize = 20 // width of a sample in the legend
	inset      = 5  // from the axes to their lowest values
)

var (
	axisLine = draw.LineStyle{Color: color.Black, Width: vg.Points(0.5)}
	gridLine = draw.LineStyle{Color: color.RGBA{225, 225, 225, 255}, Width: vg.Points(0.25)}
)

// Draw draws the chart over the whole canvas.
func (c *Chart) Draw(canvas draw.Canvas) {
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	canvas = draw.Crop(canvas, gap, -gap, gap, -gap)
	canvas = draw.Crop(canvas, 0, -c.drawLegend(canvas), 0, 0)
	if c.Title != "" {
		style := TextStyle(textSize)
		style.XAlign, style.YAlign = text.XCenter, text.YTop
		canvas.FillText(style, vg.Point{X: canvas.Center().X, Y: canvas.Max.Y}, c.Title)
		canvas = draw.Crop(canvas, 0, 0, 0, -style.Height(c.Title)-2*gap)
	}
	left, right, bottom, top := c.margins()
	data := draw.Crop(canvas, left, -right, bottom, -top)
	at := func(p Point) vg.Point {
		return vg.Point{X: data.X(c.X.share(p.X)), Y: data.Y(c.Y.share(p.Y))}
	}
	c.drawX(canvas, data)
	c.drawY(canvas, data)
	for _, l := range c.layers {
		l.Draw(data, at)
	}
}

// margins are the room that axes and their labels need around the data.
func (c *Chart) margins() (left, right, bottom, top vg.Length) {
	style, xs, ys := c.X.style(), c.X.ticks(), c.Y.ticks()
	line := TextStyle(textSize).FontExtents().Height
	left, bottom, top = inset+tickLength+gap+widest(TextStyle(textSize), ys), inset+tickLength+gap, line/2
	if c.Y.Label != "" {
		left += line + gap
	}
	deepest := vg.Length(0)
	for _, t := range xs {
		box := style.Rectangle(t.Label)
		// What a label takes beside the data: those of the first and the last tick reach beyond.
		left, right = max(left, -box.Min.X), max(right, box.Max.X)
		deepest = max(deepest, -box.Min.Y)
	}
	bottom += deepest
	if c.X.Label != "" {
		bottom += line + gap
	}
	return left, right, bottom, top
}

func (c *Chart) drawX(all, data draw.Canvas) {
	style, y := c.X.style(), data.Min.Y-inset
	for _, t := range c.X.ticks() {
		x := data.X(c.X.share(t.Value))
		if !c.X.Slanted {
			data.StrokeLine2(axisLine, x, y, x, y-tickLength)
		}
		data.StrokeLine2(gridLine, x, data.Min.Y, x, data.Max.Y)
		data.FillText(style, vg.Point{X: x, Y: y - tickLength - gap/2}, t.Label)
	}
	if !c.X.Slanted {
		data.StrokeLine2(axisLine, data.Min.X, y, data.Max.X, y)
	}
	label := TextStyle(textSize)
	label.XAlign, label.YAlign = text.XCenter, text.YBottom
	all.FillText(label, vg.Point{X: all.Center().X, Y: all.Min.Y + label.FontExtents().Descent}, c.X.Label)
}

func (c *Chart) drawY(all, data draw.Canvas) {
	style, x := TextStyle(textSize), data.Min.X-inset
	style.XAlign, style.YAlign = text.XRight, text.YCenter
	for _, t := range c.Y.ticks() {
		y := data.Y(c.Y.share(t.Value))
		data.StrokeLine2(axisLine, x-tickLength, y, x, y)
		data.StrokeLine2(gridLine, data.Min.X, y, data.Max.X, y)
		data.FillText(style, vg.Point{X: x - tickLength - gap/2, Y: y}, t.Label)
	}
	data.StrokeLine2(axisLine, x, data.Min.Y, x, data.Max.Y)
	label := TextStyle(textSize)
	label.Rotation, label.XAlign, label.YAlign = math.Pi/2, text.XCenter, text.YTop
	all.FillText(label, vg.Point{X: all.Min.X, Y: data.Center().Y}, c.Y.Label)
}

// drawLegend draws the legend at the right, below the title, and returns the width that it takes.
func (c *Chart) drawLegend(canvas draw.Canvas) vg.Length {
	if len(c.entries) == 0 {
		return 0
	}
	style := TextStyle(textSize)
	width := vg.Length(0)
	for _, e := range c.entries {
		width = max(width, style.Width(e.name))
	}
	width += sampleSize + 2*gap
	title := TextStyle(textSize).Height(c.Title) + 2*gap
	line := style.FontExtents().Height
	left, top := canvas.Max.X-width+gap, canvas.Max.Y-title
	style.YAlign = text.YCenter
	for _, e := range c.entries {
		box := draw.Canvas{Canvas: canvas.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: left, Y: top - line}, Max: vg.Point{X: left + sampleSize, Y: top}}}
		for _, s := range e.samples {
			s.Sample(box)
		}
		canvas.FillText(style, vg.Point{X: box.Max.X + gap, Y: box.Center().Y}, e.name)
		top -= line + gap
	}
	return width
}

// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// extent is that of points.
func extent(points []Point) (low, high Point) {
	low, high = Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	for _, p := range points {
		low = Point{min(low.X, p.X), min(low.Y, p.Y)}
		high = Point{max(high.X, p.X), max(high.Y, p.Y)}
	}
	return low, high
}

// places are those of points.
func places(points []Point, at func(Point) vg.Point) []vg.Point {
	list := make([]vg.Point, len(points))
	for i, p := range points {
		list[i] = at(p)
	}
	return list
}

// Line joins points, in their order.
type Line struct {
	Points []Point
	Style  draw.LineStyle
}

// Extent is that of the points.
func (l Line) Extent() (low, high Point) { return extent(l.Points) }

// Draw draws what of the line lies on the canvas.
func (l Line) Draw(c draw.Canvas, at func(Point) vg.Point) {
	c.StrokeLines(l.Style, c.ClipLinesXY(places(l.Points, at))...)
}

// Sample is a piece of the line.
func (l Line) Sample(c draw.Canvas) {
	c.StrokeLine2(l.Style, c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
}

// Marks shows each point by a glyph.
type Marks struct {
	Points []Point
	Style  draw.GlyphStyle
}

// Extent is that of the points.
func (m Marks) Extent() (low, high Point) { return extent(m.Points) }

// Draw draws the glyphs whose centres lie on the canvas.
func (m Marks) Draw(c draw.Canvas, at func(Point) vg.Point) {
	for _, p := range m.Points {
		c.DrawGlyph(m.Style, at(p))
	}
}

// Sample is one glyph.
func (m Marks) Sample(c draw.Canvas) { c.DrawGlyph(m.Style, c.Center()) }

// Distances are those from a value to the ends of its whisker, both at least 0.
type Distances struct{ Low, High float64 }

// Whiskers are vertical lines through points, as many as Ends has.
type Whiskers struct {
	Points []Point
	Ends   []Distances
	Style  draw.LineStyle
	Cap    vg.Length // width of the bars at the ends
	Offset vg.Length // to the right of the points
}

// Extent has the ends in it.
func (w Whiskers) Extent() (low, high Point) {
	var ends []Point
	for i, p := range w.Points {
		ends = append(ends, Point{p.X, p.Y - w.Ends[i].Low}, Point{p.X, p.Y + w.Ends[i].High})
	}
	return extent(ends)
}

// Draw draws what of the whiskers lies on the canvas. Bars at the ends of one
// at the canvas's edge are whole.
func (w Whiskers) Draw(c draw.Canvas, at func(Point) vg.Point) {
	for i, p := range w.Points {
		low, high := at(Point{p.X, p.Y - w.Ends[i].Low}), at(Point{p.X, p.Y + w.Ends[i].High})
		x, half := low.X+w.Offset, w.Cap/2
		if !c.ContainsX(x) {
			continue
		}
		c.StrokeLines(w.Style, c.ClipLinesY(
			[]vg.Point{{X: x, Y: low.Y}, {X: x, Y: high.Y}},
			[]vg.Point{{X: x - half, Y: low.Y}, {X: x + half, Y: low.Y}},
			[]vg.Point{{X: x - half, Y: high.Y}, {X: x + half, Y: high.Y}})...)
	}
}

// Bars stand on 0, the bar of Values[i] at i of the horizontal axis.
type Bars struct {
	Values []float64
	Color  color.Color
	Width  vg.Length
	Offset vg.Length // of a bar's middle, to the right
}

// Extent has the feet of the bars in it.
func (b Bars) Extent() (low, high Point) {
	var ends []Point
	for i, v := range b.Values {
		ends = append(ends, Point{float64(i), 0}, Point{float64(i), v})
	}
	return extent(ends)
}

// Draw draws what of the bars lies on the canvas.
func (b Bars) Draw(c draw.Canvas, at func(Point) vg.Point) {
	for i, v := range b.Values {
		foot, top := at(Point{float64(i), 0}), at(Point{float64(i), v})
		left, right := foot.X+b.Offset-b.Width/2, foot.X+b.Offset+b.Width/2
		c.FillPolygon(b.Color, c.ClipPolygonXY([]vg.Point{{X: left, Y: foot.Y}, {X: right, Y: foot.Y}, {X: right, Y: top.Y}, {X: left, Y: top.Y}}))
	}
}

// Sample is a filled box.
func (b Bars) Sample(c draw.Canvas) { fill(c, b.Color) }

// Area is a filled polygon.
type Area struct {
	Points []Point
	Color  color.Color
}

// Extent is that of the corners.
func (a Area) Extent() (low, high Point) { return extent(a.Points) }

// Draw draws what of the area lies on the canvas.
func (a Area) Draw(c draw.Canvas, at func(Point) vg.Point) {
	c.FillPolygon(a.Color, c.ClipPolygonXY(places(a.Points, at)))
}

// Sample is a filled box.
func (a Area) Sample(c draw.Canvas) { fill(c, a.Color) }

func fill(c draw.Canvas, with color.Color) {
	c.FillPolygon(with, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}

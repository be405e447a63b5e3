// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparsek/sparsek/internal/bench/chart"
)

// labels are names of points, each where it lies on no other name and on no point.
type labels struct {
	points []chart.Point
	texts  []string
}

// Extent is empty: the points are another layer's.
func (l *labels) Extent() (low, high chart.Point) {
	return chart.Point{X: math.Inf(1), Y: math.Inf(1)}, chart.Point{X: math.Inf(-1), Y: math.Inf(-1)}
}

// Draw draws them.
func (l *labels) Draw(c draw.Canvas, where func(chart.Point) vg.Point) {
	style := chart.TextStyle(6.5)
	style.YAlign = text.YCenter
	const radius = 3.5
	var taken []vg.Rectangle
	at := make([]vg.Point, len(l.points))
	for i, point := range l.points {
		at[i] = where(point)
		taken = append(taken, vg.Rectangle{Min: vg.Point{X: at[i].X - radius, Y: at[i].Y - radius}, Max: vg.Point{X: at[i].X + radius, Y: at[i].Y + radius}})
	}
	for i, name := range l.texts {
		width, height := style.Width(name), style.Font.Size*1.1
		box := place(at[i], width, height, c.Rectangle, taken)
		taken = append(taken, box)
		middle := vg.Point{X: box.Min.X, Y: (box.Min.Y + box.Max.Y) / 2}
		if far := box.Min.X - at[i].X; far > 12 || far < -width-12 || abs(middle.Y-at[i].Y) > 1.5*height {
			end := vg.Point{X: box.Min.X, Y: middle.Y}
			if at[i].X > box.Max.X {
				end.X = box.Max.X
			}
			c.StrokeLine2(draw.LineStyle{Color: grey, Width: vg.Points(0.4)}, at[i].X, at[i].Y, end.X, end.Y)
		}
		c.FillText(style, middle, name)
	}
}

// place finds the room for a text next to a point that is nearest to it, within the picture.
func place(at vg.Point, width, height vg.Length, within vg.Rectangle, taken []vg.Rectangle) vg.Rectangle {
	const gap = 4.5
	first := vg.Rectangle{}
	for ring := range 8 {
		for _, up := range []vg.Length{0, 1, -1} {
			for _, right := range []bool{true, false} {
				if ring > 0 && up == 0 {
					continue
				}
				left := at.X + gap
				if !right {
					left = at.X - gap - width
				}
				bottom := at.Y - height/2 + up*vg.Length(max(1, ring))*height
				box := vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: left + width, Y: bottom + height}}
				if ring == 0 && up == 0 && right {
					first = box
				}
				if inside(box, within) && !overlaps(box, taken) {
					return box
				}
			}
		}
	}
	return first
}

func inside(box, within vg.Rectangle) bool {
	return box.Min.X >= within.Min.X && box.Max.X <= within.Max.X && box.Min.Y >= within.Min.Y && box.Max.Y <= within.Max.Y
}

func overlaps(box vg.Rectangle, taken []vg.Rectangle) bool {
	for _, t := range taken {
		if box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y {
			return true
		}
	}
	return false
}

func abs(v vg.Length) vg.Length { return max(v, -v) }

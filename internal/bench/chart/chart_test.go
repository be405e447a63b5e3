// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"image/color"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
	"gonum.org/v1/plot/vg/vgsvg"
	"pgregory.net/rapid"
)

// A linear axis bears four to eleven labels, all different and within its range.
func TestLinearTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e3, 1e3).Draw(t, "low")
		high := low + math.Pow(10, rapid.Float64Range(0, 6).Draw(t, "range"))
		list := LinearTicks(low, high)
		seen := map[string]bool{}
		for _, tick := range list {
			slack := 1e-6 * (high - low)
			if tick.Value < low-slack || tick.Value > high+slack || seen[tick.Label] {
				t.Fatalf("%v from %v to %v", list, low, high)
			}
			seen[tick.Label] = true
		}
		if len(list) < 4 || len(list) > 11 {
			t.Fatalf("%v from %v to %v", list, low, high)
		}
	})
	if list := LinearTicks(0, 10); len(list) != 11 || list[0].Label != "0" || list[10].Label != "10" {
		t.Errorf("%v from 0 to 10", list)
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		axis Axis
		v    float64
		want float64
	}{
		{Axis{Min: 2, Max: 6}, 3, 0.25},
		{Axis{Min: 1, Max: 100, Log: true}, 10, 0.5},
		{Axis{Min: 3, Max: 3}, 3, 0.5},
		{Axis{Min: 3, Max: 3, Log: true}, 3, 0.5},
		{New("", "", "").X, 1.5, 0.5},
	} {
		if got := c.axis.share(c.v); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v lies at %v of %+v, want %v", c.v, got, c.axis, c.want)
		}
	}
}

func sampleChart() *Chart {
	c := New("a title\nof two lines", "across", "upwards")
	points := []Point{{1, 10}, {2, 40}, {4, 20}}
	black := draw.LineStyle{Color: color.Black, Width: 1}
	c.AddNamed("a line", Line{points, black}, Marks{points, draw.GlyphStyle{Color: color.Black, Radius: 2, Shape: draw.CircleGlyph{}}})
	c.AddNamed("bars", Bars{Values: []float64{5, 6}, Color: color.Black, Width: 8})
	c.AddNamed("an area", Area{[]Point{{1, 1}, {2, 1}, {2, 2}}, color.Black})
	c.Add(Whiskers{Points: points[:1], Ends: []Distances{{15, 45}}, Style: black, Cap: 4})
	return c
}

// Layers widen the axes to their values, with feet of bars and ends of whiskers.
func TestExtent(t *testing.T) {
	c := sampleChart()
	if c.X.Min != 0 || c.X.Max != 4 || c.Y.Min != -5 || c.Y.Max != 55 {
		t.Errorf("axes from %v to %v and from %v to %v", c.X.Min, c.X.Max, c.Y.Min, c.Y.Max)
	}
}

// All text is there, in the one font, and lies on the canvas; without layers, too.
func TestText(t *testing.T) {
	slanted := sampleChart()
	slanted.X.Slanted = true
	slanted.X.Ticks = func(float64, float64) []Tick { return []Tick{{0, "a long name at the left"}, {4, "right"}, {9, "far"}} }
	for name, c := range map[string]struct {
		chart *Chart
		want  []string
		lacks string
	}{
		"sample":  {sampleChart(), []string{"a title", "of two lines", "across", "upwards", "a line", "bars", "an area", "0", "4", "50"}, "60"},
		"slanted": {slanted, []string{"a long name at the left", "right"}, "far"},
		"empty":   {New("nothing", "x", "y"), []string{"nothing", "x", "y", "1", "2"}, "3"},
	} {
		const width, height = 400, 300
		var all recorder.Canvas
		c.chart.Draw(draw.NewCanvas(&all, width, height))
		texts := map[string]bool{}
		for _, action := range all.Actions {
			text, ok := action.(*recorder.FillString)
			if !ok {
				continue
			}
			texts[text.String] = true
			if text.Font.Name() != "LiberationSans-Regular" {
				t.Errorf("%s: %q is in %s", name, text.String, text.Font.Name())
			}
		}
		for _, want := range c.want {
			if !texts[want] {
				t.Errorf("%s: no %q in %v", name, want, texts)
			}
		}
		if texts[c.lacks] {
			t.Errorf("%s: %q is drawn", name, c.lacks)
		}
		left, _, bottom, _ := c.chart.margins()
		for _, tick := range c.chart.X.ticks() {
			box := c.chart.X.style().Rectangle(tick.Label)
			if left+box.Min.X < 0 || bottom+box.Min.Y < 0 {
				t.Errorf("%s: %q reaches out of the margins %v and %v: %v", name, tick.Label, left, bottom, box)
			}
		}
		canvas := vgsvg.New(width, height)
		c.chart.Draw(draw.New(canvas))
		var svg bytes.Buffer
		if _, err := canvas.WriteTo(&svg); err != nil || strings.Contains(svg.String(), "NaN") {
			t.Errorf("%s: %v, %s", name, err, svg.String())
		}
	}
}

// Lines and bars end at the canvas's edges; whiskers beside it are left out, those at its edge have whole bars.
func TestClipped(t *testing.T) {
	at := func(p Point) vg.Point { return vg.Point{X: vg.Length(p.X), Y: vg.Length(p.Y)} }
	black := draw.LineStyle{Color: color.Black, Width: 1}
	for name, c := range map[string]struct {
		layer     Layer
		low, high vg.Point // of what is drawn
	}{
		"line":           {Line{[]Point{{-10, 50}, {50, 50}, {110, 50}}, black}, vg.Point{X: 0, Y: 50}, vg.Point{X: 100, Y: 50}},
		"bar":            {Bars{Values: []float64{0, 0, 200}, Color: color.Black, Width: 2, Offset: 3}, vg.Point{X: 2, Y: 0}, vg.Point{X: 6, Y: 100}},
		"area":           {Area{[]Point{{-5, 10}, {50, 10}, {50, 20}, {-5, 20}}, color.Black}, vg.Point{X: 0, Y: 10}, vg.Point{X: 50, Y: 20}},
		"whisker":        {Whiskers{Points: []Point{{100, 50}}, Ends: []Distances{{10, 20}}, Style: black, Cap: 4}, vg.Point{X: 98, Y: 40}, vg.Point{X: 102, Y: 70}},
		"whisker beside": {Whiskers{Points: []Point{{101, 50}, {9, 50}}, Ends: []Distances{{10, 20}, {1, 2}}, Style: black}, vg.Point{X: 9, Y: 49}, vg.Point{X: 9, Y: 52}},
	} {
		var all recorder.Canvas
		c.layer.Draw(draw.NewCanvas(&all, 100, 100), at)
		low, high := vg.Point{X: 1e9, Y: 1e9}, vg.Point{X: -1e9, Y: -1e9}
		add := func(path vg.Path) {
			for _, step := range path {
				if step.Type != vg.CloseComp {
					low = vg.Point{X: min(low.X, step.Pos.X), Y: min(low.Y, step.Pos.Y)}
					high = vg.Point{X: max(high.X, step.Pos.X), Y: max(high.Y, step.Pos.Y)}
				}
			}
		}
		for _, action := range all.Actions {
			switch a := action.(type) {
			case *recorder.Stroke:
				add(a.Path)
			case *recorder.Fill:
				add(a.Path)
			}
		}
		if low != c.low || high != c.high {
			t.Errorf("%s is drawn from %v to %v, want %v to %v", name, low, high, c.low, c.high)
		}
	}
}

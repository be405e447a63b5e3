// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/gate"
)

// Size and margins of a chart, in the units of its SVG.
const (
	width, height          = 720.0, 380.0
	left, right, top, foot = 60.0, 20.0, 20.0, 45.0
)

// axis maps values to places, by their logarithm.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (a.to-a.from)*(math.Log(v)-math.Log(a.low))/(math.Log(a.high)-math.Log(a.low))
}

// ticks are the powers of ten, with 2 and 5 between them, on the axis.
func (a axis) ticks() []float64 {
	var list []float64
	for exponent := math.Floor(math.Log10(a.low)); exponent <= math.Ceil(math.Log10(a.high)); exponent++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, exponent); v >= a.low*0.999 && v <= a.high*1.001 {
				list = append(list, v)
			}
		}
	}
	return list
}

// Point is a case in a roofline chart.
type point struct {
	Name, Title string
	X, Y        float64 // places
	Failed      bool
}

// roof is a roofline chart of one level of memory.
type roof struct {
	Title          string
	Width, Height  float64
	Left, Bottom   float64
	XTicks, YTicks []tick
	Line           string // points of the roof
	Points         []point
	XLabel         string
}

type tick struct {
	At    float64
	Label string
}

// newRoof draws the cases by their operations for a byte that was measured to move (the metric `bytes`) under the
// ceilings of the chip. ok is false where no case has the figures.
func newRoof(r *gate.Result, level, bytes string, rate, tensor float64) (chart roof, ok bool) {
	type sample struct {
		name                string
		intensity, achieved float64
		failed              bool
	}
	var list []sample
	// Both sides of the ridge, where the roof bends, are in the chart.
	ridge := tensor / rate
	x := axis{low: ridge / 2, high: 2 * ridge, from: left, to: width - right}
	y := axis{low: tensor / 2, high: 1.3 * tensor, from: height - foot, to: top}
	for i := range r.Cases {
		c := &r.Cases[i]
		moved, time := metric(c, bytes), metric(c, "duration_ns")
		if moved == nil || time == nil || !(moved.First > 0 && time.First > 0 && c.FLOP > 0) {
			continue
		}
		s := sample{c.Name, c.FLOP / moved.First, c.FLOP / time.First * 1e9, c.Verdict == gate.Fail}
		x.low, x.high = min(x.low, s.intensity/1.5), max(x.high, s.intensity*1.5)
		y.low, y.high = min(y.low, s.achieved/1.5), max(y.high, s.achieved*1.3)
		list = append(list, s)
	}
	if len(list) == 0 {
		return roof{}, false
	}
	chart = roof{
		Title: level, Width: width, Height: height, Left: left, Bottom: height - foot,
		XLabel: "operations on stored blocks for each byte of " + level,
	}
	for _, v := range x.ticks() {
		chart.XTicks = append(chart.XTicks, tick{x.at(v), fmt.Sprintf("%g", v)})
	}
	for _, v := range y.ticks() {
		chart.YTicks = append(chart.YTicks, tick{y.at(v), fmt.Sprintf("%g", v/1e12)})
	}
	// The roof comes in from the left, or from below where that is nearer, rises with the rate and stays at the ceiling.
	begin := max(x.low, y.low/rate)
	chart.Line = polyline([][2]float64{{x.at(begin), y.at(begin * rate)}, {x.at(ridge), y.at(tensor)}, {x.at(x.high), y.at(tensor)}})
	for _, s := range list {
		chart.Points = append(chart.Points, point{
			Name: s.name, X: x.at(s.intensity), Y: y.at(s.achieved), Failed: s.failed,
			Title: fmt.Sprintf("%s: %.0f TFLOP/s at %.3g FLOP/byte, %.0f %% of the roof", s.name, s.achieved/1e12, s.intensity,
				100*s.achieved/min(tensor, s.intensity*rate)),
		})
	}
	return chart, true
}

func polyline(points [][2]float64) string {
	var words []string
	for _, p := range points {
		words = append(words, fmt.Sprintf("%.1f,%.1f", p[0], p[1]))
	}
	return strings.Join(words, " ")
}

// roofs are the charts of L2 and DRAM.
func roofs(r *gate.Result) []roof {
	chip := roofline.H200()
	var list []roof
	for _, level := range []struct {
		name, bytes string
		rate        float64
	}{{"L2", "l2_bytes", chip.L2}, {"DRAM", "dram_bytes", chip.DRAM}} {
		if chart, ok := newRoof(r, level.name, level.bytes, level.rate, chip.Tensor); ok {
			list = append(list, chart)
		}
	}
	return list
}

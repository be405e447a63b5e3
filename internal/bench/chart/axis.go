// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"math"
	"strconv"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Tick is a value of an axis that bears a label.
type Tick struct {
	Value float64
	Label string
}

// Axis is the range of values that a chart shows in one direction.
type Axis struct {
	Label    string
	Min, Max float64                        // Min is above Max while nothing is added
	Log      bool                           // equal ratios take equal room; Min must be above 0
	Ticks    func(low, high float64) []Tick // LinearTicks where it is nil
	Slanted  bool                           // labels are names: they stand at 45 degrees, without marks
}

// span is the range that is drawn: never empty.
func (a *Axis) span() (low, high float64) {
	low, high = a.Min, a.Max
	switch {
	case low > high:
		return 1, 2
	case low == high && a.Log:
		return low / 2, high * 2
	case low == high:
		return low - 1, high + 1
	}
	return low, high
}

// share is where a value lies: 0 at the axis's lower end, 1 at its upper one.
func (a *Axis) share(v float64) float64 {
	low, high := a.span()
	if a.Log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	return (v - low) / (high - low)
}

// ticks are those that lie within the range.
func (a *Axis) ticks() []Tick {
	low, high := a.span()
	make := a.Ticks
	if make == nil {
		make = LinearTicks
	}
	const slack = 1e-9 // of rounding
	var list []Tick
	for _, t := range make(low, high) {
		if s := a.share(t.Value); s >= -slack && s <= 1+slack {
			list = append(list, t)
		}
	}
	return list
}

// style is that of the labels of ticks of the horizontal axis.
func (a *Axis) style() text.Style {
	style := TextStyle(textSize)
	style.XAlign, style.YAlign = text.XCenter, text.YTop
	if a.Slanted {
		style.Rotation, style.XAlign, style.YAlign = math.Pi/4, text.XRight, text.YCenter
	}
	return style
}

// widest is the width of the widest label.
func widest(style text.Style, list []Tick) vg.Length {
	width := vg.Length(0)
	for _, t := range list {
		width = max(width, style.Width(t.Label))
	}
	return width
}

// LinearTicks marks multiples of 1, 2 or 5 times a power of ten: four to
// eleven of them, where high is above low.
func LinearTicks(low, high float64) []Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/10))) // a tenth to a hundredth of the range
	for _, m := range []float64{1, 2, 5, 10} {
		if (high-low)/(m*step) <= 10 {
			step *= m
			break
		}
	}
	const slack = 1e-9 // of rounding
	var list []Tick
	for i := math.Ceil(low/step - slack); i*step <= high+slack*step; i++ {
		v := i*step + 0 // math.Ceil gives -0, which would be printed so
		list = append(list, Tick{v, strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return list
}

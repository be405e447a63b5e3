// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparsek/sparsek/internal/gate"
)

// trend is how the cycles of one case went.
type trend struct {
	Name   string
	Line   string
	Dots   []dot
	Last   string // the last figure
	Spread string // lowest and highest
}

type dot struct {
	X, Y  float64
	Class string // of the verdict
	Title string
}

// Size of a trend, in the units of its SVG.
const trendWidth, trendHeight, trendMargin = 420.0, 48.0, 6.0

// trends draws the cycles of each case over the runs, the oldest on the left. Runs that failed are in it.
func trends(history []gate.Record) []trend {
	history = slices.Clone(history)
	slices.SortStableFunc(history, func(a, b gate.Record) int { return a.Date.Compare(b.Date) })
	var names []string
	for _, r := range history {
		for name := range r.Cycles {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var list []trend
	for _, name := range names {
		list = append(list, newTrend(name, history))
	}
	return list
}

func newTrend(name string, history []gate.Record) trend {
	t := trend{Name: name}
	low, high := math.Inf(1), math.Inf(-1)
	var shown []gate.Record
	for _, r := range history {
		if v, ok := r.Cycles[name]; ok {
			low, high = min(low, v), max(high, v)
			shown = append(shown, r)
			t.Last = number(v)
		}
	}
	t.Spread = number(low) + " to " + number(high)
	// Moves of less than the gate's limit should look small: the chart spans ten percent at least.
	if span := 0.1*high - (high - low); span > 0 {
		low, high = low-span/2, high+span/2
	}
	var line [][2]float64
	for i, r := range shown {
		v := r.Cycles[name]
		x := trendWidth / 2
		if len(shown) > 1 {
			x = trendMargin + (trendWidth-2*trendMargin)*float64(i)/float64(len(shown)-1)
		}
		y := trendHeight - trendMargin
		if high > low {
			y -= (trendHeight - 2*trendMargin) * (v - low) / (high - low)
		}
		line = append(line, [2]float64{x, y})
		t.Dots = append(t.Dots, dot{x, y, class(r.Verdict), fmt.Sprintf("%s, commit %s: %s cycles, %s",
			r.Date.Format("2006-01-02 15:04"), short(r.Commit), number(v), r.Verdict)})
	}
	t.Line = polyline(line)
	return t
}

// class is how a verdict looks.
func class(v gate.Verdict) string {
	switch v {
	case gate.Pass, gate.Intact:
		return "good"
	case gate.Blessed:
		return "blessed"
	case gate.Fail:
		return "bad"
	}
	return "doubt"
}

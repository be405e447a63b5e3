// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/chart"
	"github.com/sparsek/sparsek/internal/sys/stats"
)

// picture is a chart and the name of its files.
type picture struct {
	name  string
	title string
	plot  *chart.Chart
}

// palette has colours that people with colour vision deficiency can distinguish, too (Okabe and Ito's set).
var palette = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255}, {60, 60, 60, 255},
}

var grey = color.RGBA{140, 140, 140, 255}

func colour(i int) color.RGBA { return palette[i%len(palette)] }

func glyph(i int) draw.GlyphDrawer {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
	return shapes[i%len(shapes)]
}

// pictures are those that the report has the figures for.
func pictures(r *bench.Report) ([]picture, error) {
	var list []picture
	for _, make := range []func(*bench.Report) (*picture, error){rooflinePicture, timePicture, breakEvenPicture, heldPicture, ratePicture} {
		p, err := make(r)
		if err != nil {
			return nil, err
		}
		if p != nil {
			list = append(list, *p)
		}
	}
	return list, nil
}

// newPicture has the title and its subtitle, which says of what run it is.
func newPicture(r *bench.Report, name, title, x, y string) *picture {
	heading := title + "\n" + r.Title()
	if s := State(r); s != "" {
		heading += ", " + s
	}
	return &picture{name: name, title: title, plot: chart.New(heading, x, y)}
}

// fewestTicks is how many ticks of an axis bear a label at least: with fewer a value cannot be read off.
const fewestTicks = 3

// logTicks marks 1, 2 and 5 of each power of ten, or more where that would be fewer than fewestTicks.
func logTicks(low, high float64) []chart.Tick {
	for _, marks := range [][]float64{{1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}, {1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9}} {
		var list []chart.Tick
		for exponent := math.Floor(math.Log10(low)); exponent <= math.Ceil(math.Log10(high)); exponent++ {
			for _, m := range marks {
				if v := m * math.Pow(10, exponent); v >= low*0.999 && v <= high*1.001 {
					list = append(list, chart.Tick{Value: v, Label: fmt.Sprintf("%.4g", v)})
				}
			}
		}
		if len(list) >= fewestTicks {
			return list
		}
	}
	var list []chart.Tick // a narrow range: equal steps
	for i := range fewestTicks {
		v := low + (high-low)*float64(i)/(fewestTicks-1)
		list = append(list, chart.Tick{Value: v, Label: fmt.Sprintf("%.3g", v)})
	}
	return list
}

func logAxis(a *chart.Axis) { a.Log, a.Ticks = true, logTicks }

// marks are those of curves and groups.
func marks(points []chart.Point, i int) chart.Marks {
	return chart.Marks{Points: points, Style: draw.GlyphStyle{Color: colour(i), Shape: glyph(i), Radius: vg.Points(2.5)}}
}

// addLine adds a line with its points and their quartiles.
func (p *picture) addLine(l curve, i int) {
	line := chart.Line{Points: l.points, Style: draw.LineStyle{Color: colour(i), Width: vg.Points(1.5)}}
	if l.dashed {
		line.Style.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.plot.AddNamed(l.name, line, marks(l.points, i))
	p.addWhiskers(l.points, l.whiskers, colour(i))
}

// addWhiskers adds the quartiles around points, where they are known.
func (p *picture) addWhiskers(points []chart.Point, whiskers []chart.Distances, c color.Color) {
	if len(whiskers) == len(points) {
		p.plot.Add(chart.Whiskers{Points: points, Ends: whiskers, Style: draw.LineStyle{Color: c, Width: vg.Points(0.8)}, Cap: vg.Points(4)})
	}
}

// addRule adds a line without points and without a place in the legend.
func (p *picture) addRule(points []chart.Point, c color.Color, dashed bool) {
	line := chart.Line{Points: points, Style: draw.LineStyle{Color: c, Width: vg.Points(1.2)}}
	if dashed {
		line.Style.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	p.plot.Add(line)
}

// mostLabels is the number of cases up to which points bear their names.
const mostLabels = 24

// rooflinePicture has each case of ours by the operations that it does for a byte that has to move, under the ceilings
// of the chip where they are known.
func rooflinePicture(r *bench.Report) (*picture, error) {
	type group struct { // blocks of one size
		name     string
		points   []chart.Point
		labels   []string
		whiskers []chart.Distances
	}
	unit, scale := rateUnit(r)
	var groups []group
	lowX, highX, highY := math.Inf(1), 0.0, 0.0
	for _, c := range r.Cases {
		ours := c.Find(bench.Ours)
		if ours == nil || !(ours.Effective > 0 && c.Bytes > 0) {
			continue
		}
		x := c.EffectiveFLOP / c.Bytes
		name := block(c.BlockM, c.BlockK)
		at := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{name: name})
		}
		g := &groups[at]
		g.points, g.labels = append(g.points, chart.Point{X: x, Y: scale * ours.Effective}), append(g.labels, c.Name)
		g.whiskers = append(g.whiskers, around(ours, scale*ours.Effective, func(seconds float64) float64 { return scale * c.EffectiveFLOP / seconds / 1e12 }))
		lowX, highX, highY = min(lowX, x), max(highX, x), max(highY, scale*ours.Effective)
	}
	if len(groups) == 0 {
		return nil, nil
	}
	name, heading := "intensity", "Rate by arithmetic intensity"
	if r.Chip != nil {
		name, heading = "roofline", "Roofline"
	}
	intensity := "operations on stored blocks for each byte of A's blocks, B and C"
	if isAttention(r) {
		intensity = "operations on kept pairs for each byte of Q, K, V and O"
	}
	p := newPicture(r, name, heading, intensity, "effective "+unit)
	logAxis(&p.plot.X)
	logAxis(&p.plot.Y)
	if r.Chip != nil {
		ridge := r.Chip.Tensor / r.Chip.DRAM
		lowX, highX = min(lowX, ridge/2), max(highX, 2*ridge)
		roof := []chart.Point{{X: lowX, Y: scale * lowX * r.Chip.DRAM / 1e12}, {X: ridge, Y: scale * r.Chip.Tensor / 1e12}, {X: highX, Y: scale * r.Chip.Tensor / 1e12}}
		p.addRule(roof, grey, false)
		highY = max(highY, scale*r.Chip.Tensor/1e12)
	}
	all := &labels{}
	for i, g := range groups {
		p.plot.AddNamed(g.name, marks(g.points, i))
		p.addWhiskers(g.points, g.whiskers, colour(i))
		all.points, all.texts = append(all.points, g.points...), append(all.texts, g.labels...)
	}
	p.plot.X.Min, p.plot.X.Max = lowX/1.2, highX*1.4
	p.plot.Y.Min, p.plot.Y.Max = p.plot.Y.Min/1.1, highY*1.15
	if len(r.Cases) <= mostLabels {
		p.plot.Add(all)
	}
	return p, nil
}

// curve is a line by density: of ours in blocks of one size, or of another.
type curve struct {
	name     string
	dashed   bool
	points   []chart.Point
	whiskers []chart.Distances
}

// around are the distances from a value to those at the quartiles of a time, of which it is a function.
func around(t *bench.Timed, value float64, of func(seconds float64) float64) (w chart.Distances) {
	if t.Quartiles[0] <= 0 {
		return w
	}
	a, b := of(t.Quartiles[0]), of(t.Quartiles[1])
	w.Low, w.High = max(0, value-min(a, b)), max(0, max(a, b)-value)
	return w
}

// curves collects values by density into the curves that they are named for; those without a name are left out. timed is
// whose quartiles the whiskers are of, and of makes the value of its time.
func curves(r *bench.Report, value func(c *bench.Result, t *bench.Timed) (name string, timed *bench.Timed, of func(seconds float64) float64)) []curve {
	var list []curve
	for _, c := range r.Cases {
		if c.Pattern != "random" || c.Density <= 0 {
			continue
		}
		for i := range c.Timed {
			t := &c.Timed[i]
			name, timed, of := value(c, t)
			if name == "" || !(of(timed.Seconds) > 0) {
				continue
			}
			v := of(timed.Seconds)
			at := slices.IndexFunc(list, func(l curve) bool { return l.name == name })
			if at < 0 {
				at = len(list)
				list = append(list, curve{name: name, dashed: t.Name != bench.Ours})
			}
			list[at].points = append(list[at].points, chart.Point{X: 100 * c.Density, Y: v})
			list[at].whiskers = append(list[at].whiskers, around(timed, v, of))
		}
	}
	list = slices.DeleteFunc(list, func(l curve) bool { return len(l.points) < 2 })
	for i := range list {
		sort.Sort(&list[i])
	}
	return list
}

// Len, Less and Swap sort a curve by density.
func (l *curve) Len() int           { return len(l.points) }
func (l *curve) Less(i, j int) bool { return l.points[i].X < l.points[j].X }
func (l *curve) Swap(i, j int) {
	l.points[i], l.points[j] = l.points[j], l.points[i]
	l.whiskers[i], l.whiskers[j] = l.whiskers[j], l.whiskers[i]
}

// timePicture has the times by density, where there are several densities.
func timePicture(r *bench.Report) (*picture, error) {
	if len(r.BreakEven) == 0 && r.Suite != bench.Sweep {
		return nil, nil
	}
	list := curves(r, func(c *bench.Result, t *bench.Timed) (string, *bench.Timed, func(float64) float64) {
		if t.Dense {
			return "", nil, nil
		}
		return t.Name + ", " + block(c.BlockM, c.BlockK), t, func(seconds float64) float64 { return 1e3 * seconds }
	})
	for _, name := range denseNames(r) {
		list = append(list, level(r, name))
	}
	return curvePicture(r, list, "time", "Time by density", "time, ms")
}

// denseNames are those of the dense products that were timed.
func denseNames(r *bench.Report) []string {
	var names []string
	for _, c := range r.Cases {
		for _, t := range c.Timed {
			if t.Dense && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// level is a dense product's time, which density and block size hardly change: the median over all cases.
func level(r *bench.Report, name string) curve {
	low, high := math.Inf(1), 0.0
	var times []float64
	for _, c := range r.Cases {
		low, high = min(low, 100*c.Density), max(high, 100*c.Density)
		if t := c.Find(name); t != nil {
			times = append(times, 1e3*t.Seconds)
		}
	}
	m := stats.Median(times)
	return curve{name: name + ", median", dashed: true, points: []chart.Point{{X: low, Y: m}, {X: high, Y: m}}}
}

// breakEvenPicture has ours over the dense product of the same matrix: below 1 ours is faster. Ties are shaded.
func breakEvenPicture(r *bench.Report) (*picture, error) {
	if len(r.BreakEven) == 0 {
		return nil, nil
	}
	peers := 0
	for _, c := range r.Cases[:1] {
		for _, t := range c.Timed {
			if t.Dense && !t.Full {
				peers++
			}
		}
	}
	against := ""
	list := curves(r, func(c *bench.Result, t *bench.Timed) (string, *bench.Timed, func(float64) float64) {
		ours := c.Find(bench.Ours)
		if ours == nil || !t.Dense || t.Full || t.Seconds <= 0 {
			return "", nil, nil
		}
		name := block(c.BlockM, c.BlockK)
		if against = t.Name; peers > 1 {
			name += " with " + t.Name
		}
		return name, ours, func(seconds float64) float64 { return seconds / t.Seconds }
	})
	for i := range list {
		list[i].dashed = false
	}
	if peers > 1 {
		against = "the dense product"
	}
	p, err := curvePicture(r, list, "break-even", "Break-even with "+against, "time of ours / time of dense")
	if p == nil || err != nil {
		return p, err
	}
	low, high := p.plot.X.Min, p.plot.X.Max
	for _, b := range r.BreakEven {
		at := slices.IndexFunc(list, func(l curve) bool {
			return l.name == block(b.BlockM, b.BlockK) || l.name == block(b.BlockM, b.BlockK)+" with "+b.Against
		})
		if b.TieTo == 0 || at < 0 || b.Against == bench.CUBLASFull {
			continue
		}
		const least = 1.02 // a tie at one density is to be seen, too
		from, to, bottom, top := 100*b.TieFrom/least, 100*b.TieTo*least, p.plot.Y.Min, p.plot.Y.Max
		c := colour(at)
		p.plot.AddNamed("tie, "+list[at].name, chart.Area{Points: []chart.Point{{X: from, Y: bottom}, {X: to, Y: bottom}, {X: to, Y: top}, {X: from, Y: top}}, Color: color.NRGBA{c.R, c.G, c.B, 40}})
	}
	p.plot.X.Min, p.plot.X.Max = low, high
	p.addRule([]chart.Point{{X: low, Y: 1}, {X: high, Y: 1}}, grey, true)
	return p, nil
}

func curvePicture(r *bench.Report, list []curve, name, heading, y string) (*picture, error) {
	if len(list) == 0 {
		return nil, nil
	}
	p := newPicture(r, name, heading, "stored blocks, % of all", y)
	logAxis(&p.plot.X)
	logAxis(&p.plot.Y)
	for i, l := range list {
		p.addLine(l, i)
	}
	return p, nil
}

// ratePicture has bars of the effective rates of all, case by case, where neither densities nor held SMs are what
// differs.
func ratePicture(r *bench.Report) (*picture, error) {
	if r.Suite == bench.Sweep || r.Suite == bench.Shared || len(r.Cases) == 0 {
		return nil, nil
	}
	var names, cases []string
	for _, c := range r.Cases {
		cases = append(cases, c.Name)
		for _, t := range c.Timed {
			if !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	const heading = "Effective rate by case"
	unit, scale := rateUnit(r)
	p := newPicture(r, "rates", heading, "", "effective "+unit)
	width := max(vg.Points(2), min(vg.Points(16), vg.Points(450/float64(len(cases)*(len(names)+1)))))
	for i, name := range names {
		values := make([]float64, len(r.Cases))
		offset := width * vg.Length(float64(i)-float64(len(names)-1)/2)
		var tops []chart.Point
		var whiskers []chart.Distances
		for j, c := range r.Cases {
			if t := c.Find(name); t != nil {
				values[j] = scale * t.Effective
				tops = append(tops, chart.Point{X: float64(j), Y: values[j]})
				whiskers = append(whiskers, around(t, values[j], func(seconds float64) float64 { return scale * c.EffectiveFLOP / seconds / 1e12 }))
			}
		}
		p.plot.AddNamed(name, chart.Bars{Values: values, Color: colour(i), Width: width, Offset: offset})
		p.plot.Add(chart.Whiskers{Points: tops, Ends: whiskers, Style: draw.LineStyle{Color: color.Black, Width: vg.Points(0.6)}, Cap: vg.Points(4), Offset: offset})
	}
	p.plot.X.Slanted, p.plot.X.Ticks = true, func(float64, float64) []chart.Tick {
		var list []chart.Tick
		for i, name := range cases {
			list = append(list, chart.Tick{Value: float64(i), Label: name})
		}
		return list
	}
	p.plot.X.Min, p.plot.X.Max = -0.7, float64(len(cases))-0.3 // bars at the ends are whole
	p.plot.Y.Min, p.plot.Y.Max = 0, p.plot.Y.Max*1.05
	return p, nil
}

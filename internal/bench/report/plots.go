// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/sys/stats"
)

// picture is a plot with its legend, which stands beside it, and the name of its files.
type picture struct {
	name   string
	title  string
	below  string // what the horizontal axis shows
	plot   *plot.Plot
	legend plot.Legend
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
	p := plot.New()
	p.Title.Text = title + "\n" + r.Title()
	if s := State(r); s != "" {
		p.Title.Text += ", " + s
	}
	p.Y.Label.Text = y
	p.Title.Padding = vg.Points(6)
	legend := plot.NewLegend()
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &legend.TextStyle} {
		style.Font.Variant = "Sans"
		style.Font.Size = font.Length(9)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.RGBA{225, 225, 225, 255}, color.RGBA{225, 225, 225, 255}
	p.Add(grid)
	legend.Top, legend.Left = true, true
	legend.Padding = vg.Points(3)
	return &picture{name: name, title: title, below: x, plot: p, legend: legend}
}

// draw draws plot and legend side by side.
func (p *picture) draw(c draw.Canvas) {
	width := p.legend.Rectangle(c).Size().X
	if width > 0 {
		width += vg.Points(6)
	}
	left := draw.Crop(c, 0, -width, 0, 0)
	if p.below != "" {
		// The plot itself takes the label of a logarithmic axis for one at its right end, and leaves room there.
		style := p.plot.X.Label.TextStyle
		style.XAlign, style.YAlign = text.XCenter, text.YBottom
		left.FillText(style, vg.Point{X: left.Center().X, Y: left.Min.Y + vg.Points(2)}, p.below)
		left = draw.Crop(left, 0, 0, style.FontExtents().Height+vg.Points(4), 0)
	}
	p.plot.Draw(left)
	right := draw.Crop(c, c.Max.X-c.Min.X-width, 0, 0, -vg.Points(40))
	p.legend.Draw(right)
}

// fewestTicks is how many ticks of an axis bear a label at least: with fewer a value cannot be read off.
const fewestTicks = 3

// logTicks marks 1, 2 and 5 of each power of ten, or more where that would be fewer than fewestTicks.
var logTicks = plot.TickerFunc(func(low, high float64) []plot.Tick {
	for _, marks := range [][]float64{{1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}, {1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9}} {
		var list []plot.Tick
		for exponent := math.Floor(math.Log10(low)); exponent <= math.Ceil(math.Log10(high)); exponent++ {
			for _, m := range marks {
				if v := m * math.Pow(10, exponent); v >= low*0.999 && v <= high*1.001 {
					list = append(list, plot.Tick{Value: v, Label: fmt.Sprintf("%.4g", v)})
				}
			}
		}
		if len(list) >= fewestTicks {
			return list
		}
	}
	var list []plot.Tick // a narrow range: equal steps
	for i := range fewestTicks {
		v := low + (high-low)*float64(i)/(fewestTicks-1)
		list = append(list, plot.Tick{Value: v, Label: fmt.Sprintf("%.3g", v)})
	}
	return list
})

func logAxis(a *plot.Axis) { a.Scale, a.Tick.Marker = plot.LogScale{}, logTicks }

// addLine adds a line with its points and their quartiles.
func (p *picture) addLine(l curve, i int) error {
	line, marks, err := plotter.NewLinePoints(l.points)
	if err != nil {
		return err
	}
	line.Color, marks.Color = colour(i), colour(i)
	line.Width, marks.Shape, marks.Radius = vg.Points(1.5), glyph(i), vg.Points(2.5)
	if l.dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.plot.Add(line, marks)
	p.legend.Add(l.name, line, marks)
	return p.addWhiskers(l.points, l.whiskers, colour(i))
}

// addWhiskers adds the quartiles around points, where they are known.
func (p *picture) addWhiskers(points plotter.XYs, whiskers plotter.YErrors, c color.Color) error {
	if len(whiskers) != len(points) {
		return nil
	}
	bars, err := plotter.NewYErrorBars(struct {
		plotter.XYer
		plotter.YErrorer
	}{points, whiskers})
	if err != nil {
		return err
	}
	bars.Color, bars.Width, bars.CapWidth = c, vg.Points(0.8), vg.Points(4)
	p.plot.Add(bars)
	return nil
}

// addRule adds a line without points and without a place in the legend.
func addRule(p *plot.Plot, points plotter.XYs, c color.Color, dashed bool) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.2)
	if dashed {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	p.Add(line)
	return nil
}

// mostLabels is the number of cases up to which points bear their names.
const mostLabels = 24

// rooflinePicture has each case of ours by the operations that it does for a byte that has to move, under the ceilings
// of the chip where they are known.
func rooflinePicture(r *bench.Report) (*picture, error) {
	type group struct { // blocks of one size
		name     string
		points   plotter.XYs
		labels   []string
		whiskers plotter.YErrors
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
		g.points, g.labels = append(g.points, plotter.XY{X: x, Y: scale * ours.Effective}), append(g.labels, c.Name)
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
		roof := plotter.XYs{{X: lowX, Y: scale * lowX * r.Chip.DRAM / 1e12}, {X: ridge, Y: scale * r.Chip.Tensor / 1e12}, {X: highX, Y: scale * r.Chip.Tensor / 1e12}}
		if err := addRule(p.plot, roof, grey, false); err != nil {
			return nil, err
		}
		highY = max(highY, scale*r.Chip.Tensor/1e12)
	}
	all := &labels{}
	for i, g := range groups {
		marks, err := plotter.NewScatter(g.points)
		if err != nil {
			return nil, err
		}
		marks.Color, marks.Shape, marks.Radius = colour(i), glyph(i), vg.Points(2.5)
		p.plot.Add(marks)
		p.legend.Add(g.name, marks)
		if err := p.addWhiskers(g.points, g.whiskers, colour(i)); err != nil {
			return nil, err
		}
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
	points   plotter.XYs
	whiskers plotter.YErrors
}

// around are the distances from a value to those at the quartiles of a time, of which it is a function.
func around(t *bench.Timed, value float64, of func(seconds float64) float64) (w struct{ Low, High float64 }) {
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
			list[at].points = append(list[at].points, plotter.XY{X: 100 * c.Density, Y: v})
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
	return curve{name: name + ", median", dashed: true, points: plotter.XYs{{X: low, Y: m}, {X: high, Y: m}}}
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
		shade, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: bottom}, {X: to, Y: bottom}, {X: to, Y: top}, {X: from, Y: top}})
		if err != nil {
			return nil, err
		}
		c := colour(at)
		shade.Color, shade.LineStyle.Width = color.NRGBA{c.R, c.G, c.B, 40}, 0
		p.plot.Add(shade)
		p.legend.Add("tie, "+list[at].name, shade)
	}
	p.plot.X.Min, p.plot.X.Max = low, high
	return p, addRule(p.plot, plotter.XYs{{X: low, Y: 1}, {X: high, Y: 1}}, grey, true)
}

func curvePicture(r *bench.Report, list []curve, name, heading, y string) (*picture, error) {
	if len(list) == 0 {
		return nil, nil
	}
	p := newPicture(r, name, heading, "stored blocks, % of all", y)
	logAxis(&p.plot.X)
	logAxis(&p.plot.Y)
	for i, l := range list {
		if err := p.addLine(l, i); err != nil {
			return nil, err
		}
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
		values := make(plotter.Values, len(r.Cases))
		offset := width * vg.Length(float64(i)-float64(len(names)-1)/2)
		var tops plotter.XYs
		var whiskers plotter.YErrors
		for j, c := range r.Cases {
			if t := c.Find(name); t != nil {
				values[j] = scale * t.Effective
				tops = append(tops, plotter.XY{X: float64(j), Y: values[j]})
				whiskers = append(whiskers, around(t, values[j], func(seconds float64) float64 { return scale * c.EffectiveFLOP / seconds / 1e12 }))
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = colour(i), 0
		bars.Offset = offset
		p.plot.Add(bars, &shifted{tops, whiskers, offset})
		p.legend.Add(name, bars)
	}
	p.plot.NominalX(cases...)
	p.plot.X.Min, p.plot.X.Max = -0.7, float64(len(cases))-0.3 // bars at the ends are whole
	p.plot.Y.Min, p.plot.Y.Max = 0, p.plot.Y.Max*1.05
	p.plot.X.Tick.Label.Rotation = math.Pi / 4
	p.plot.X.Tick.Label.XAlign, p.plot.X.Tick.Label.YAlign = text.XRight, text.YCenter
	return p, nil
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/sys/stats"
)

// picture is a plot with the name of its files.
type picture struct {
	name  string
	title string
	plot  *plot.Plot
}

// palette tells lines apart, also for those who do not see colours as others do (Okabe and Ito's set).
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
	for _, make := range []func(*bench.Report) (*picture, error){rooflinePicture, timePicture, breakEvenPicture, ratePicture} {
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

// newPlot has the title and its subtitle, which says of what run it is.
func newPlot(r *bench.Report, title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title + "\n" + r.Title()
	if s := State(r); s != "" {
		p.Title.Text += ", " + s
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Title.Padding = vg.Points(6)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
		style.Font.Size = font.Length(9)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.RGBA{225, 225, 225, 255}, color.RGBA{225, 225, 225, 255}
	p.Add(grid)
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	return p
}

// logTicks marks 1, 2 and 5 of each power of ten.
var logTicks = plot.TickerFunc(func(low, high float64) []plot.Tick {
	var list []plot.Tick
	for exponent := math.Floor(math.Log10(low)); exponent <= math.Ceil(math.Log10(high)); exponent++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, exponent); v >= low*0.999 && v <= high*1.001 {
				list = append(list, plot.Tick{Value: v, Label: fmt.Sprintf("%.4g", v)})
			}
		}
	}
	return list
})

func logAxis(a *plot.Axis) { a.Scale, a.Tick.Marker = plot.LogScale{}, logTicks }

// addLine adds a line with its points.
func addLine(p *plot.Plot, name string, points plotter.XYs, i int, dashed bool) error {
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, marks.Color = colour(i), colour(i)
	line.Width, marks.Shape, marks.Radius = vg.Points(1.5), glyph(i), vg.Points(2.5)
	if dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.Add(line, marks)
	p.Legend.Add(name, line, marks)
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

// makeRoom makes room for so many lines of a legend above what a logarithmic axis shows.
func makeRoom(p *plot.Plot, lines int) {
	const line = 0.045 // of the height
	share := min(0.5, line*float64(lines))
	p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, share/(1-share))
}

// rooflinePicture has each case of ours by the operations that it does for a byte that has to move, under the ceilings
// of the chip where they are known.
func rooflinePicture(r *bench.Report) (*picture, error) {
	type group struct { // blocks of one size
		name   string
		points plotter.XYs
		labels []string
	}
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
		g.points, g.labels = append(g.points, plotter.XY{X: x, Y: ours.Effective}), append(g.labels, c.Name)
		lowX, highX, highY = min(lowX, x), max(highX, x), max(highY, ours.Effective)
	}
	if len(groups) == 0 {
		return nil, nil
	}
	const heading = "Roofline"
	p := newPlot(r, heading, "operations on stored blocks for each byte of A's blocks, B and C", "effective TFLOP/s")
	logAxis(&p.X)
	logAxis(&p.Y)
	if r.Chip != nil {
		ridge := r.Chip.Tensor / r.Chip.DRAM
		lowX, highX = min(lowX, ridge/2), max(highX, 2*ridge)
		roof := plotter.XYs{{X: lowX, Y: lowX * r.Chip.DRAM / 1e12}, {X: ridge, Y: r.Chip.Tensor / 1e12}, {X: highX, Y: r.Chip.Tensor / 1e12}}
		if err := addRule(p, roof, grey, false); err != nil {
			return nil, err
		}
		highY = max(highY, r.Chip.Tensor/1e12)
	}
	for i, g := range groups {
		marks, err := plotter.NewScatter(g.points)
		if err != nil {
			return nil, err
		}
		marks.Color, marks.Shape, marks.Radius = colour(i), glyph(i), vg.Points(2.5)
		p.Add(marks)
		p.Legend.Add(g.name, marks)
		if len(r.Cases) > mostLabels {
			continue
		}
		labels, err := plotter.NewLabels(plotter.XYLabels{XYs: g.points, Labels: g.labels})
		if err != nil {
			return nil, err
		}
		for i := range labels.TextStyle {
			labels.TextStyle[i].Font.Variant, labels.TextStyle[i].Font.Size = "Sans", font.Length(6.5)
		}
		labels.Offset = vg.Point{X: vg.Points(3), Y: vg.Points(-2)}
		p.Add(labels)
	}
	p.X.Min, p.X.Max, p.Y.Max = lowX/1.2, highX*1.4, highY*1.3
	p.Legend.Left = true
	makeRoom(p, len(groups))
	return &picture{"roofline", heading, p}, nil
}

// curve is a line by density: of ours in blocks of one size, or of another.
type curve struct {
	name   string
	dashed bool
	points plotter.XYs
}

// curves collects values by density into the curves that they are named for; those without a name are left out.
func curves(r *bench.Report, value func(c *bench.Result, t *bench.Timed) (name string, v float64)) []curve {
	var list []curve
	for _, c := range r.Cases {
		if c.Pattern != "random" || c.Density <= 0 {
			continue
		}
		for i := range c.Timed {
			t := &c.Timed[i]
			name, v := value(c, t)
			if name == "" || !(v > 0) {
				continue
			}
			at := slices.IndexFunc(list, func(l curve) bool { return l.name == name })
			if at < 0 {
				at = len(list)
				list = append(list, curve{name: name, dashed: t.Name != bench.Ours})
			}
			list[at].points = append(list[at].points, plotter.XY{X: 100 * c.Density, Y: v})
		}
	}
	list = slices.DeleteFunc(list, func(l curve) bool { return len(l.points) < 2 })
	for _, l := range list {
		slices.SortFunc(l.points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	}
	return list
}

// timePicture has the times by density, where there are several densities.
func timePicture(r *bench.Report) (*picture, error) {
	if len(r.BreakEven) == 0 && r.Suite != bench.Sweep {
		return nil, nil
	}
	list := curves(r, func(c *bench.Result, t *bench.Timed) (string, float64) {
		if t.Dense {
			return "", 0
		}
		return t.Name + ", " + block(c.BlockM, c.BlockK), 1e3 * t.Seconds
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

// level is a dense product's time, which neither density nor block size changes: the median over all cases.
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
	return curve{name, true, plotter.XYs{{X: low, Y: m}, {X: high, Y: m}}}
}

// breakEvenPicture has ours over the dense product: below 1 ours is faster.
func breakEvenPicture(r *bench.Report) (*picture, error) {
	if len(r.BreakEven) == 0 {
		return nil, nil
	}
	list := curves(r, func(c *bench.Result, t *bench.Timed) (string, float64) {
		ours := c.Find(bench.Ours)
		if ours == nil || !t.Dense || t.Seconds <= 0 {
			return "", 0
		}
		return block(c.BlockM, c.BlockK) + " with " + t.Name, ours.Seconds / t.Seconds
	})
	for i := range list {
		list[i].dashed = false
	}
	p, err := curvePicture(r, list, "break-even", "Break-even with the dense product", "time of ours / time of dense")
	if p == nil || err != nil {
		return p, err
	}
	low, high := p.plot.X.Min, p.plot.X.Max
	return p, addRule(p.plot, plotter.XYs{{X: low, Y: 1}, {X: high, Y: 1}}, grey, true)
}

func curvePicture(r *bench.Report, list []curve, name, heading, y string) (*picture, error) {
	if len(list) == 0 {
		return nil, nil
	}
	p := newPlot(r, heading, "stored blocks, % of all", y)
	logAxis(&p.X)
	logAxis(&p.Y)
	for i, l := range list {
		if err := addLine(p, l.name, l.points, i, l.dashed); err != nil {
			return nil, err
		}
	}
	p.Legend.Left = true
	makeRoom(p, len(list))
	return &picture{name, heading, p}, nil
}

// ratePicture has bars of the effective rates of all, case by case, where densities are not what differs.
func ratePicture(r *bench.Report) (*picture, error) {
	if r.Suite == bench.Sweep || len(r.Cases) == 0 {
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
	p := newPlot(r, heading, "", "effective TFLOP/s")
	width := max(vg.Points(2), min(vg.Points(16), vg.Points(450/float64(len(cases)*(len(names)+1)))))
	for i, name := range names {
		values := make(plotter.Values, len(r.Cases))
		for j, c := range r.Cases {
			if t := c.Find(name); t != nil {
				values[j] = t.Effective
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = colour(i), 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(names)-1)/2)
		p.Add(bars)
		p.Legend.Add(name, bars)
	}
	p.NominalX(cases...)
	p.X.Min, p.X.Max = -0.7, float64(len(cases))-0.3 // bars at the ends are whole
	p.Y.Min, p.Y.Max = 0, p.Y.Max*(1+0.06*float64(len(names)))
	p.X.Tick.Label.Rotation = math.Pi / 4
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
	return &picture{"rates", heading, p}, nil
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/pair"
)

//go:embed page.html.in
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "percent": percent, "change": change, "class": class, "details": details, "heading": heading, "meaning": meaning,
	"ratio": func(i pair.Interval) string { return ratio(&i) }, "ratioOf": ratio,
	"metric": metric, "share": func(v float64) float64 { return 100 * v },
}).Parse(pageText))

// HTML writes a page that needs nothing but itself: the verdict, every figure, the roofline and the trend.
func HTML(w io.Writer, r *gate.Result, history []gate.Record) error {
	return page.Execute(w, struct {
		*gate.Result
		Roofs                   []roof
		Trends                  []trend
		TrendWidth, TrendHeight float64
	}{r, roofs(r), trends(history), trendWidth, trendHeight})
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/sparsek/sparsek/internal/bench"
)

//go:embed page.html.in
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// pageColumns is how many characters wide a table in the page is at most, so that it fits a window of 1280 points.
const pageColumns = 118

// drawing is a picture in the page.
type drawing struct {
	Name, Title string
	SVG         template.HTML
}

// HTML writes a page that needs nothing but itself: pictures, break-even, all figures and the method.
func HTML(w io.Writer, r *bench.Report) error {
	list, err := pictures(r)
	if err != nil {
		return err
	}
	var drawings []drawing
	for _, p := range list {
		text, err := drawSVG(&p)
		if err != nil {
			return err
		}
		// The library escapes the texts that it draws.
		drawings = append(drawings, drawing{p.name, p.title, template.HTML(inline(text))})
	}
	var fitted []table
	for _, t := range tables(r, times(r)) {
		t, left := t.fit(pageColumns)
		if len(left) > 0 {
			t.LeftOut = strings.Join(left, ", ")
		}
		fitted = append(fitted, t)
	}
	return page.Execute(w, struct {
		*bench.Report
		State    string
		Notes    []string
		Drawings []drawing
		Tables   []table
	}{r, State(r), notes(r), drawings, fitted})
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/sparsek/sparsek/internal/bench"
)

//go:embed page.html.in
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

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
	return page.Execute(w, struct {
		*bench.Report
		State    string
		Notes    []string
		Drawings []drawing
		Tables   []table
	}{r, State(r), notes(r), drawings, tables(r, times(r))})
}

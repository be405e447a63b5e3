// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// table is a table of a report, in any format.
type table struct {
	Title   string
	Same    string // what all rows have in common, in place of columns
	LeftOut string // columns, for want of room
	columns []column
}

// column is one of a table.
type column struct {
	heading string
	left    bool // aligned to the left
	// Where a table is too wide, columns are left out, those with the lowest number first; 0: never.
	leave int
	// Where all rows have the same, the column is left out and said once.
	once  bool
	cells []string
}

// build makes a table of rows: a cell of a column for each. Columns without any text are left out.
func build[R any](title string, rows []R, columns []column, cells ...func(R) string) table {
	t := table{Title: title}
	var same []string
	for i, c := range columns {
		for _, row := range rows {
			c.cells = append(c.cells, humanize.OneLine(cells[i](row)))
		}
		switch {
		case !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" }):
		case c.once && len(rows) > 1 && len(distinct(c.cells)) == 1:
			same = append(same, strings.ReplaceAll(c.heading, "\n", " ")+" "+distinct(c.cells)[0])
		default:
			t.columns = append(t.columns, c)
		}
	}
	t.Same = strings.Join(same, ", ")
	return t
}

// distinct are the texts of cells that have some, each once.
func distinct(cells []string) []string {
	var list []string
	for _, cell := range cells {
		if cell != "" && !slices.Contains(list, cell) {
			list = append(list, cell)
		}
	}
	return list
}

// Heading are the names of the columns.
func (t table) Heading() []column { return t.columns }

// Name and Left are for templates.
func (c column) Name() string { return c.heading }
func (c column) Left() bool   { return c.left }

// Cell is one of a row.
type cell struct {
	Text string
	Left bool
}

// Rows are the cells, row by row.
func (t table) Rows() [][]cell {
	if len(t.columns) == 0 {
		return nil
	}
	rows := make([][]cell, len(t.columns[0].cells))
	for i := range rows {
		for _, c := range t.columns {
			rows[i] = append(rows[i], cell{c.cells[i], c.left})
		}
	}
	return rows
}

// width is how many columns of a terminal it takes.
func (t table) width() int {
	total := 0
	for i, c := range t.columns {
		if i > 0 {
			total += 2
		}
		widest := 0
		for _, text := range append(strings.Split(c.heading, "\n"), c.cells...) {
			widest = max(widest, utf8.RuneCountInString(text))
		}
		total += widest
	}
	return total
}

// fit leaves out columns until the table is at most so wide; 0: as wide as it is. It also returns the names of those left out.
func (t table) fit(width int) (fitted table, left []string) {
	t.columns = slices.Clone(t.columns)
	for width > 0 && t.width() > width {
		least := -1
		for i, c := range t.columns {
			if c.leave > 0 && (least < 0 || c.leave < t.columns[least].leave) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		left = append(left, strings.ReplaceAll(t.columns[least].heading, "\n", " "))
		t.columns = slices.Delete(t.columns, least, least+1)
	}
	return t, left
}

// print writes it for a terminal. Headings of two lines stand above each other.
func (t table) print(w io.Writer, width int) error {
	fitted, left := t.fit(width)
	lines := 1
	for _, c := range fitted.columns {
		lines = max(lines, 1+strings.Count(c.heading, "\n"))
	}
	var out humanize.Table
	for line := range lines {
		var cells []string
		for _, c := range fitted.columns {
			parts := strings.Split(c.heading, "\n")
			parts = append(make([]string, lines-len(parts)), parts...) // at the bottom
			cells = append(cells, parts[line])
		}
		out.Add(cells...)
	}
	for _, row := range fitted.Rows() {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.Text)
		}
		out.Add(cells...)
	}
	for _, c := range fitted.columns {
		if !c.left {
			break
		}
		out.Left++
	}
	if t.Title != "" {
		fmt.Fprintf(w, "\n%s\n", t.Title)
	}
	if t.Same != "" {
		fmt.Fprintf(w, "all: %s\n", t.Same)
	}
	if err := out.Print(w); err != nil {
		return err
	}
	if len(left) > 0 {
		_, err := fmt.Fprintln(w, wrap("left out, as the terminal is narrow: "+strings.Join(left, ", "), width))
		return err
	}
	return nil
}

// markdown writes it as a table of Markdown.
func (t table) markdown(w io.Writer) error {
	if t.Title != "" {
		fmt.Fprintf(w, "\n**%s**", t.Title)
		if t.Same != "" {
			fmt.Fprintf(w, " (all: %s)", escape(t.Same))
		}
		fmt.Fprint(w, "\n\n")
	}
	var out humanize.Table
	var cells []string
	for _, c := range t.columns {
		cells = append(cells, escape(strings.ReplaceAll(c.heading, "\n", " ")))
	}
	out.Add(cells...)
	for _, row := range t.Rows() {
		cells = nil
		for _, c := range row {
			cells = append(cells, escape(c.Text))
		}
		out.Add(cells...)
	}
	return out.Markdown(w)
}

// escape keeps text from ending a cell.
func escape(text string) string { return strings.ReplaceAll(humanize.OneLine(text), "|", `\|`) }

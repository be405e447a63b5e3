// SPDX-License-Identifier: Apache-2.0

// Package humanize writes numbers and tables for people.
package humanize

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is text in columns. The first Left columns are aligned to the left, the others to the right.
type Table struct {
	Left int
	rows [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the rows, each on a line.
func (t *Table) Print(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < t.Left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// Markdown writes the rows as a table of Markdown, of which the first row is the heading.
func (t *Table) Markdown(w io.Writer) error {
	var text strings.Builder
	for i, row := range t.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			text.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// Text writes tables for a terminal of that width, 0: as wide as they are; method: with the method below.
func Text(w io.Writer, r *bench.Report, width int, method bool) error {
	var out strings.Builder
	fmt.Fprintln(&out, wrap(r.Title(), width))
	for i, t := range tables(r, times(r)) {
		if i == 0 {
			fmt.Fprintln(&out)
		}
		if err := t.print(&out, width); err != nil {
			return err
		}
	}
	for _, note := range notes(r) {
		fmt.Fprintf(&out, "\n%s\n", wrap(note, width))
	}
	if method {
		out.WriteString("\n")
		for _, line := range r.Method {
			fmt.Fprintln(&out, wrap(line, width))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// wrap breaks a text into lines of at most that width, 0: none.
func wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width:
			out.WriteString("\n")
			at = 0
		default:
			out.WriteString(" ")
			at++
		}
		out.WriteString(word)
		at += n
	}
	return out.String()
}

// Markdown writes the tables of reports, below what it takes to measure them again; method: with the method, once for
// all reports that share it.
func Markdown(w io.Writer, reports []*bench.Report, method bool) error {
	var out strings.Builder
	for i, r := range reports {
		if i > 0 {
			out.WriteString("\n")
		}
		if len(reports) > 1 {
			fmt.Fprintf(&out, "### %s, suite %s\n\n", escape(r.Device), r.Suite)
		}
		fmt.Fprintf(&out, "`%s`: commit %s, %s%s, %s.\n", r.Command, r.Commit, r.Device, driver(r), r.Date)
		first := beside(r)
		if r.Suite == bench.PeerTable {
			first = compact(r)
		}
		for _, t := range tables(r, first) {
			if err := t.markdown(&out); err != nil {
				return err
			}
		}
		bullets(&out, notes(r))
		if method && (i == len(reports)-1 || strings.Join(reports[i+1].Method, "\n") != strings.Join(r.Method, "\n")) {
			bullets(&out, r.Method)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func bullets(out *strings.Builder, lines []string) {
	if len(lines) > 0 {
		out.WriteString("\n")
	}
	for _, line := range lines {
		fmt.Fprintf(out, "- %s\n", humanize.OneLine(line))
	}
}

func driver(r *bench.Report) string {
	if r.Driver == "" {
		return ""
	}
	return ", driver " + r.Driver
}

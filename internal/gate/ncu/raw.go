// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Raw is CSV of the raw page by lines, as the profiler wrote them: to take some launches out, or to put those of
// several runs together, without changing a digit.
type Raw struct {
	Header, Units string
	Rows          []string
}

// ParseRaw takes the table out of the profiler's output. Parse reads the rows.
func ParseRaw(text []byte) (Raw, error) {
	launches, err := Parse(bytes.NewReader(text))
	if err != nil {
		return Raw{}, err
	}
	table, _ := body(text)
	lines := strings.SplitAfter(strings.TrimRight(string(table), "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	if len(lines) != 2+len(launches) {
		return Raw{}, fmt.Errorf("ncu CSV: %d lines for %d launches: want those of the raw page (--page raw)", len(lines), len(launches))
	}
	return Raw{lines[0], lines[1], lines[2:]}, nil
}

// Slice is the table with the launches from `from` up to, and not with, `to`.
func (r Raw) Slice(from, to int) Raw { return Raw{r.Header, r.Units, r.Rows[from:to]} }

// String is the CSV.
func (r Raw) String() string { return r.Header + r.Units + strings.Join(r.Rows, "") }

// Join puts the launches of tables with the same columns and units below each other.
func Join(tables []Raw) (Raw, error) {
	all := Raw{tables[0].Header, tables[0].Units, nil}
	for _, t := range tables {
		if t.Header != all.Header || t.Units != all.Units {
			return Raw{}, fmt.Errorf("ncu CSV: runs with other columns or units cannot be put together")
		}
		all.Rows = slices.Concat(all.Rows, t.Rows)
	}
	return all, nil
}

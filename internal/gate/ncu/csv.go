// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Launch is one launch of a kernel that was measured.
type Launch struct {
	ID     string // the profiler's number of it, unique in one run of the profiler
	Kernel string // its name as the profiler prints it
	values map[string]reading
}

// reading is one counter as it was printed.
type reading struct{ text, unit string }

// Errors of Parse, wrapped.
var (
	ErrEmpty     = errors.New("no kernel was measured")
	ErrTruncated = errors.New("the CSV is cut off")
)

// The columns that are found by their names.
const (
	columnID     = "ID"
	columnKernel = "Kernel Name"
	columnMetric = "Metric Name"
	columnUnit   = "Metric Unit"
	columnValue  = "Metric Value"
)

// Parse reads the profiler's CSV in either form. Lines before the header, in which the profiler reports its progress, are
// passed over.
func Parse(r io.Reader) ([]Launch, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("ncu CSV: %w", err)
	}
	table, found := body(bytes.TrimPrefix(all, []byte("\ufeff")))
	if !found {
		return nil, fmt.Errorf("ncu CSV: %w: there is no header row with %q and %q", ErrEmpty, columnID, columnKernel)
	}
	rows, err := readRows(table)
	if err != nil {
		return nil, err
	}
	header := rows[0]
	if slices.Contains(header, columnMetric) {
		return parseLong(header, rows[1:])
	}
	return parseRaw(header, rows[1:])
}

// body is the table, from its header on, without the profiler's own lines ("==PROF== ...").
func body(text []byte) (table []byte, found bool) {
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(line)
		if !found {
			found = isHeader(trimmed)
		}
		if found && len(trimmed) > 0 && !bytes.HasPrefix(trimmed, []byte("==")) {
			table = append(table, line...)
		}
	}
	return table, found
}

// isHeader knows the header by its columns, in quotes or not.
func isHeader(line []byte) bool {
	names, err := csv.NewReader(bytes.NewReader(line)).Read()
	return err == nil && slices.Contains(names, columnID) && slices.Contains(names, columnKernel)
}

func readRows(table []byte) ([][]string, error) {
	reader := csv.NewReader(bytes.NewReader(table))
	reader.FieldsPerRecord = 0 // as many as the header has
	rows, err := reader.ReadAll()
	if errors.Is(err, csv.ErrFieldCount) || errors.Is(err, csv.ErrQuote) {
		return nil, fmt.Errorf("ncu CSV: %w: %w", ErrTruncated, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ncu CSV: %w", err)
	}
	for i, name := range rows[0] {
		if slices.Contains(rows[0][:i], name) {
			return nil, fmt.Errorf("ncu CSV: two columns are named %q", name)
		}
	}
	return rows, nil
}

// parseRaw reads the raw page: the row below the header has the units and no ID.
func parseRaw(header []string, rows [][]string) ([]Launch, error) {
	if len(rows) == 0 {
		return nil, fmt.Errorf("ncu CSV: %w: there is a header and nothing below it", ErrEmpty)
	}
	id, kernel, units := slices.Index(header, columnID), slices.Index(header, columnKernel), rows[0]
	if units[id] != "" {
		return nil, fmt.Errorf("ncu CSV: the row of units is missing below the header: %q", units)
	}
	var launches []Launch
	for _, row := range rows[1:] {
		if row[id] == "" || row[kernel] == "" {
			return nil, fmt.Errorf("ncu CSV: a row without ID or kernel: %q", row)
		}
		l := Launch{row[id], row[kernel], map[string]reading{}}
		for i, name := range header {
			if strings.Contains(name, "__") { // as all counters have it and no other column
				l.values[name] = reading{row[i], units[i]}
			}
		}
		launches = append(launches, l)
	}
	if len(launches) == 0 {
		return nil, fmt.Errorf("ncu CSV: %w: there are units and nothing below them", ErrEmpty)
	}
	return launches, nil
}

// parseLong reads the long form. Rows of one ID are one launch; an ID that comes again further down, with a counter
// that it already had, is one of another run.
func parseLong(header []string, rows [][]string) ([]Launch, error) {
	id, kernel := slices.Index(header, columnID), slices.Index(header, columnKernel)
	metric, value, unit := slices.Index(header, columnMetric), slices.Index(header, columnValue), slices.Index(header, columnUnit)
	if value < 0 {
		return nil, fmt.Errorf("ncu CSV: there is a column %q and none %q", columnMetric, columnValue)
	}
	var launches []Launch
	for _, row := range rows {
		if row[id] == "" { // a row of units, which some versions print
			continue
		}
		last := len(launches) - 1
		if last < 0 || launches[last].ID != row[id] || launches[last].has(row[metric]) {
			launches = append(launches, Launch{row[id], row[kernel], map[string]reading{}})
			last++
		}
		if launches[last].Kernel != row[kernel] {
			return nil, fmt.Errorf("ncu CSV: launch %s is of %q and of %q", row[id], launches[last].Kernel, row[kernel])
		}
		r := reading{text: row[value]}
		if unit >= 0 {
			r.unit = row[unit]
		}
		launches[last].values[row[metric]] = r
	}
	if len(launches) == 0 {
		return nil, fmt.Errorf("ncu CSV: %w: there is a header and nothing below it", ErrEmpty)
	}
	return launches, nil
}

func (l Launch) has(counter string) bool {
	_, ok := l.values[counter]
	return ok
}

// Value is a metric of the launch, in the metric's unit.
func (l Launch) Value(m Metric) (float64, error) {
	r, ok := l.values[m.Counter]
	if !ok {
		return 0, fmt.Errorf("launch %s has no %s (%s): another version of ncu may have another name for it", l.ID, m.Counter, m.Name)
	}
	v, err := parseNumber(r.text)
	if err == nil {
		v, err = toBase(v, r.unit, m.Unit)
	}
	if err != nil {
		return 0, fmt.Errorf("launch %s, %s: %w", l.ID, m.Counter, err)
	}
	return v, nil
}

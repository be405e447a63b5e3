// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

// The Matrix Market format: Boisvert, Pozo and Remington, "The Matrix Market exchange formats: initial design",
// NISTIR 5935, 1996.

// longestLine is far above what any number or customary comment needs.
const longestLine = 1 << 20

// mtxHeader is what the first line says.
type mtxHeader struct {
	array    bool   // dense, column by column
	field    string // real, integer or pattern
	symmetry string // general, symmetric or skew-symmetric
}

func readGzip(r io.Reader) (*bsr.Entries, error) {
	plain, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("no gzip file: %w", err)
	}
	return ReadMatrixMarket(plain)
}

// ReadMatrixMarket reads a whole Matrix Market file: coordinate or array; real, integer or pattern; general, symmetric or
// skew-symmetric. Errors name the line. Memory grows with the entries that are there, whatever the size line says.
func ReadMatrixMarket(r io.Reader) (*bsr.Entries, error) {
	lines := &lineReader{scanner: bufio.NewScanner(r)}
	lines.scanner.Buffer(make([]byte, 64<<10), longestLine)
	e, err := parseMatrixMarket(lines)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", max(1, lines.number), err)
	}
	return e, nil
}

func parseMatrixMarket(lines *lineReader) (*bsr.Entries, error) {
	first, err := lines.raw()
	if err != nil {
		return nil, atEnd(err, "the file is empty")
	}
	header, err := parseMtxHeader(string(first))
	if err != nil {
		return nil, err
	}
	line, err := lines.next()
	if err != nil {
		return nil, atEnd(err, "the size line is missing")
	}
	sizes, err := parseSizes(line, header)
	if err != nil {
		return nil, err
	}
	p := &mtxParser{header: header, lines: lines, entries: &bsr.Entries{Rows: int(sizes[0]), Cols: int(sizes[1])}}
	if header.array {
		err = p.array()
	} else {
		err = p.coordinates(sizes[2])
	}
	if err != nil {
		return nil, err
	}
	if line, err := lines.next(); err == nil {
		return nil, fmt.Errorf("%q is behind the last entry that the size line announces", clip(line))
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return p.entries, nil
}

func parseMtxHeader(line string) (mtxHeader, error) {
	words := strings.Fields(strings.ToLower(line))
	if len(words) != 5 || words[0] != "%%matrixmarket" {
		return mtxHeader{}, fmt.Errorf("%q is not of the form \"%%%%MatrixMarket matrix coordinate real general\"", clip([]byte(line)))
	}
	object, format, field, symmetry := words[1], words[2], words[3], words[4]
	if object != "matrix" {
		return mtxHeader{}, fmt.Errorf("the object is %q: only a matrix can be read", object)
	}
	if format != "coordinate" && format != "array" {
		return mtxHeader{}, fmt.Errorf("the format is %q: only coordinate and array can be read", format)
	}
	switch field {
	case "real", "integer":
	case "double":
		field = "real"
	case "unsigned-integer":
		field = "integer"
	case "pattern":
		if format == "array" {
			return mtxHeader{}, errors.New("an array of pattern has no values: pattern belongs to coordinate")
		}
	case "complex":
		return mtxHeader{}, errors.New("the field is complex: only real, integer and pattern can be multiplied")
	default:
		return mtxHeader{}, fmt.Errorf("the field is %q: only real, integer and pattern can be read", field)
	}
	switch symmetry {
	case "general", "symmetric":
	case "skew-symmetric":
		if field == "pattern" {
			return mtxHeader{}, errors.New("a pattern has no signs and so cannot be skew-symmetric")
		}
	case "hermitian":
		return mtxHeader{}, errors.New("the symmetry is hermitian, that of a complex matrix: only general, symmetric and skew-symmetric can be multiplied")
	default:
		return mtxHeader{}, fmt.Errorf("the symmetry is %q: only general, symmetric and skew-symmetric can be read", symmetry)
	}
	return mtxHeader{format == "array", field, symmetry}, nil
}

// parseSizes reads rows, columns and, of coordinates, the number of entries.
func parseSizes(line []byte, h mtxHeader) ([]int64, error) {
	words := bytes.Fields(line)
	want, form := 3, "rows, columns and entries"
	if h.array {
		want, form = 2, "rows and columns"
	}
	if len(words) != want {
		return nil, fmt.Errorf("size line %q: want %s", clip(line), form)
	}
	sizes := make([]int64, want)
	for i, w := range words {
		n, err := strconv.ParseInt(string(w), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("size line %q: %q is no size", clip(line), clip(w))
		}
		sizes[i] = n
	}
	if err := bsr.CheckShape(sizes[0], sizes[1]); err != nil {
		return nil, err
	}
	if h.symmetry != "general" && sizes[0] != sizes[1] {
		return nil, fmt.Errorf("a %s matrix of %d x %d: it must be square", h.symmetry, sizes[0], sizes[1])
	}
	return sizes, nil
}

type mtxParser struct {
	header  mtxHeader
	lines   *lineReader
	entries *bsr.Entries
}

// coordinates reads "row column value" lines; rows and columns count from 1.
func (p *mtxParser) coordinates(count int64) error {
	want := 3
	if p.header.field == "pattern" {
		want = 2
	}
	for i := range count {
		line, err := p.lines.next()
		if err != nil {
			return atEnd(err, "the file ends after %d of %d entries", i, count)
		}
		words := bytes.Fields(line)
		if len(words) != want {
			return fmt.Errorf("%q has %d numbers, not %d", clip(line), len(words), want)
		}
		row, err := parsePlace(words[0], p.entries.Rows, "row")
		if err != nil {
			return err
		}
		col, err := parsePlace(words[1], p.entries.Cols, "column")
		if err != nil {
			return err
		}
		value := 1.0
		if want == 3 {
			if value, err = p.value(words[2]); err != nil {
				return err
			}
		}
		if err := p.add(row, col, value); err != nil {
			return err
		}
	}
	return nil
}

// array reads one value a line, column by column; of a symmetric matrix the lower triangle, of a skew-symmetric one
// without its diagonal. Zeros make no entries.
func (p *mtxParser) array() error {
	for col := range p.entries.Cols {
		first := 0
		switch p.header.symmetry {
		case "symmetric":
			first = col
		case "skew-symmetric":
			first = col + 1
		}
		for row := first; row < p.entries.Rows; row++ {
			line, err := p.lines.next()
			if err != nil {
				return atEnd(err, "the file ends before the value of row %d, column %d", row+1, col+1)
			}
			value, err := p.value(line)
			if err != nil {
				return err
			}
			if value == 0 {
				continue
			}
			if err := p.add(int32(row), int32(col), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// add appends an entry and what the symmetry makes of it.
func (p *mtxParser) add(row, col int32, value float64) error {
	skew := p.header.symmetry == "skew-symmetric"
	if row == col {
		if skew && value != 0 {
			return fmt.Errorf("%v on the diagonal, at row %d: a skew-symmetric matrix has zeros there", value, row+1)
		}
		p.entries.Add(row, col, value)
		return nil
	}
	p.entries.Add(row, col, value)
	switch {
	case skew:
		p.entries.Add(col, row, -value)
	case p.header.symmetry == "symmetric":
		p.entries.Add(col, row, value)
	}
	return nil
}

func (p *mtxParser) value(word []byte) (float64, error) {
	text := string(word)
	if p.header.field == "integer" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return float64(n), nil
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no 64-bit integer", clip(word))
		}
		return float64(n), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		// Fortran programs write 1.5D+03.
		v, err = strconv.ParseFloat(strings.NewReplacer("d", "e", "D", "e").Replace(text), 64)
	}
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, fmt.Errorf("%q is no number", clip(word))
	}
	return v, nil // beyond float64's range: an infinity
}

func parsePlace(word []byte, size int, what string) (int32, error) {
	n, err := strconv.ParseInt(string(word), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q is no integer", what, clip(word))
	}
	if n < 1 || n > int64(size) {
		return 0, fmt.Errorf("%s %d is not within 1 and %d", what, n, size)
	}
	return int32(n - 1), nil
}

// lineReader counts lines and leaves out comments and blank ones.
type lineReader struct {
	scanner *bufio.Scanner
	number  int
}

// raw gives the next line as it is, or io.EOF.
func (l *lineReader) raw() ([]byte, error) {
	l.number++
	if l.scanner.Scan() {
		return l.scanner.Bytes(), nil
	}
	switch err := l.scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("the line is longer than %d bytes", longestLine)
	case err != nil:
		return nil, err
	}
	return nil, io.EOF
}

// next gives the next line that says something, without white space around it, or io.EOF.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.raw()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' {
			return line, nil
		}
	}
}

// atEnd puts a message in the place of io.EOF.
func atEnd(err error, format string, args ...any) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf(format, args...)
	}
	return err
}

// clip keeps messages short whatever a file holds.
func clip(b []byte) string {
	const most = 60
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}

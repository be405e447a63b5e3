// SPDX-License-Identifier: Apache-2.0

package shapemap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Format is that of the file, in Header.Format.
const Format = 1

// Header is the first line of a map's file: what its cells were measured with.
type Header struct {
	Format  int     `json:"map_format"`
	Command string  `json:"command"` // of the first run
	Version string  `json:"version"` // of sparsek
	Commit  string  `json:"commit"`  // of the library's sources
	Build   string  `json:"build"`   // of the library
	Backend string  `json:"backend"` // "GPU" or "CPU"
	Device  string  `json:"device"`
	Driver  string  `json:"driver,omitempty"`
	Date    string  `json:"date"` // UTC, of the first run
	Seed    uint64  `json:"seed"`
	Rates   *Rates  `json:"rates,omitempty"` // of a GPU
	Rivals  Strings `json:"rivals"`          // that were to be measured beside the kernels of other libraries
	// On a GPU, plans of kernels that pack A keep its values packed; false in files from before they did.
	KeptValues bool `json:"kept_values,omitempty"`
}

// Strings is a list that is [] in JSON where it is empty.
type Strings []string

// MarshalJSON implements json.Marshaler.
func (s Strings) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]string(s))
}

// Rates are what the cost model knows of a GPU.
type Rates struct {
	SMs        int     `json:"sm_count"`
	ClockHz    int64   `json:"clock_hz"`
	MemoryRate float64 `json:"memory_bytes_per_second"`
	L2Bytes    int64   `json:"l2_bytes"`
}

// differs says in what cells under two headers were measured differently, nil where they can stand in one file.
func (h *Header) differs(other *Header) error {
	for _, field := range []struct{ what, a, b string }{
		{"another build of the library", h.Build, other.Build},
		{"another device", h.Device, other.Device},
		{"another seed", fmt.Sprint(h.Seed), fmt.Sprint(other.Seed)},
		{"other rivals", fmt.Sprint(h.Rivals), fmt.Sprint(other.Rivals)},
	} {
		if field.a != field.b {
			return fmt.Errorf("%s: %q, here %q", field.what, field.a, field.b)
		}
	}
	return nil
}

// Map is what a file holds, or several.
type Map struct {
	Header
	Parts []Part `json:"parts,omitempty"` // of several files
	Cells []Cell `json:"cells"`
}

// Find gives the cell of a point, nil where there is none.
func (m *Map) Find(k Key) *Cell {
	for i := range m.Cells {
		if m.Cells[i].Key == k {
			return &m.Cells[i]
		}
	}
	return nil
}

// ErrNoMap is what Read gives for a file that does not begin as a map does.
var ErrNoMap = errors.New("no map of sparsek bench --suite map")

// errBegun is what Read gives for a file that ends within its first line, which begins as that of a map.
var errBegun = fmt.Errorf("%w: its first line has no end", ErrNoMap)

const begins = `{"map_format":`

// Read reads a map. A last line without its end, which a run that was stopped may leave behind, is not taken. whole is the
// number of bytes before it.
func Read(r io.Reader) (m *Map, whole int64, err error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, 0, err
	}
	for number := 1; ; number++ {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if !ended {
			break
		}
		if m == nil {
			var h Header
			if err := json.Unmarshal(line, &h); err != nil || h.Format == 0 {
				return nil, 0, ErrNoMap
			}
			if h.Format != Format {
				return nil, 0, fmt.Errorf("the map is of format %d, and this program reads %d: measure again", h.Format, Format)
			}
			m = &Map{Header: h}
		} else {
			var c Cell
			if err := json.Unmarshal(line, &c); err != nil {
				return nil, 0, fmt.Errorf("line %d: %w", number, err)
			}
			if old := m.Find(c.Key); old != nil {
				*old = c
			} else {
				m.Cells = append(m.Cells, c)
			}
		}
		whole += int64(len(line)) + 1
		text = rest
	}
	if m == nil && bytes.HasPrefix(text, []byte(begins)) {
		return nil, 0, errBegun
	}
	if m == nil {
		return nil, 0, ErrNoMap
	}
	return m, whole, nil
}

// Journal is a map's file that is written cell by cell: a line for each, as soon as it is measured.
type Journal struct {
	Map
	file *os.File // nil: nothing is kept
}

// Open opens the file of a map, or makes it; with an empty path nothing is kept. What an earlier run wrote is in Map,
// but for cells that failed, which are measured again. An error where that was measured with something else.
func Open(path string, h Header) (j *Journal, err error) {
	h.Format = Format
	j = &Journal{Map: Map{Header: h}}
	if path == "" {
		return j, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
		}
	}()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another run writes it: %w", err)
	}
	at, err := file.Stat()
	if err != nil {
		return nil, err
	}
	j.file = file
	if at.Size() == 0 {
		return j, j.line(h)
	}
	old, whole, err := Read(file)
	if errors.Is(err, errBegun) { // the run was stopped before anything was measured
		if err := j.cut(0); err != nil {
			return nil, err
		}
		return j, j.line(h)
	}
	if err != nil {
		return nil, err
	}
	if err := old.differs(&h); err != nil {
		return nil, fmt.Errorf("it was measured with %w; name another file, or remove it", err)
	}
	j.Map = *old
	return j, j.cut(whole)
}

// cut leaves so many bytes of the file, and writes on behind them.
func (j *Journal) cut(whole int64) error {
	if err := j.file.Truncate(whole); err != nil {
		return err
	}
	_, err := j.file.Seek(whole, io.SeekStart)
	return err
}

// Missing are the columns of a matrix that are not on the map yet, or failed.
func (j *Journal) Missing(m Matrix) (list []int) {
	for _, n := range m.N {
		if c := j.Find(Key{m.DType, m.Pattern, m.Block, n}); c == nil || c.Failed != "" {
			list = append(list, n)
		}
	}
	return list
}

// Add puts a cell on the map and into the file.
func (j *Journal) Add(c Cell) error {
	if old := j.Find(c.Key); old != nil {
		*old = c
	} else {
		j.Cells = append(j.Cells, c)
	}
	return j.line(c)
}

// line writes one line in one call, so that a run that is stopped leaves at most one that is not whole, the last.
func (j *Journal) line(v any) error {
	if j.file == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

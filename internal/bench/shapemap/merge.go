// SPDX-License-Identifier: Apache-2.0

package shapemap

import "fmt"

// Part is what a map has of one file.
type Part struct {
	Header
	Count int `json:"cells"` // that come from it
}

// Merge puts maps of one device, seed and set of rivals on one, whatever builds of the library they were measured with:
// a point that several have is that of the last. Its header is that of the first, and Parts says what is of which. An
// error where the maps differ in anything but the build, names the place of the one that does.
func Merge(maps []*Map) (*Map, error) {
	if len(maps) == 1 {
		return maps[0], nil
	}
	all := &Map{Header: maps[0].Header}
	from := map[Key]int{}  // the part that a cell is of
	place := map[Key]int{} // in all.Cells
	for i, m := range maps {
		other := m.Header
		other.Build = all.Build
		if err := all.Header.differs(&other); err != nil {
			return nil, fmt.Errorf("map %d of %d: it was measured with %w", i+1, len(maps), err)
		}
		if m.Backend != all.Backend {
			return nil, fmt.Errorf("map %d of %d: it is of a %s, the first of a %s", i+1, len(maps), m.Backend, all.Backend)
		}
		for _, c := range m.Cells {
			if at, ok := place[c.Key]; ok {
				all.Cells[at] = c
			} else {
				place[c.Key] = len(all.Cells)
				all.Cells = append(all.Cells, c)
			}
			from[c.Key] = i
		}
		all.Parts = append(all.Parts, Part{Header: m.Header})
	}
	for _, part := range from {
		all.Parts[part].Count++
	}
	return all, nil
}

// Sources are the files that a map is of: its Parts, or itself where it is of one.
func (m *Map) Sources() []Part {
	if len(m.Parts) > 0 {
		return m.Parts
	}
	return []Part{{m.Header, len(m.Cells)}}
}

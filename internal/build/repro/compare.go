// SPDX-License-Identifier: Apache-2.0

package repro

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/build"
)

// objectDir is where a build has its objects.
const objectDir = "build/obj"

// Difference is a place where two builds differ.
type Difference struct {
	File    string // an object, or the library, relative to the checkout
	Section string // of it; empty where the difference is in no section
	Offset  int64  // of the first byte that differs, in the section or else the file; -1 where there is none
	Detail  string
}

func (d Difference) String() string {
	text := d.File
	if d.Section != "" {
		text += " section " + d.Section
	}
	if d.Offset >= 0 {
		text += fmt.Sprintf(" at byte %d", d.Offset)
	}
	return text + ": " + d.Detail
}

// compareBuilds compares the libraries of two checkouts and returns their
// SHA-256. Where they differ it looks for the objects that the difference
// comes from.
func compareBuilds(a, b string) (string, error) {
	first, err := os.ReadFile(filepath.Join(a, build.Library))
	if err != nil {
		return "", fmt.Errorf("comparing: %w", err)
	}
	second, err := os.ReadFile(filepath.Join(b, build.Library))
	if err != nil {
		return "", fmt.Errorf("comparing: %w", err)
	}
	if bytes.Equal(first, second) {
		sum := sha256.Sum256(first)
		return hex.EncodeToString(sum[:]), nil
	}
	differences, err := compareObjects(filepath.Join(a, objectDir), filepath.Join(b, objectDir))
	if err != nil {
		return "", fmt.Errorf("comparing: %w", err)
	}
	return "", &DifferentError{append(differences, compareFiles(build.Library, first, second)...)}
}

// compareObjects compares the objects of two folders, in the order of their
// names.
func compareObjects(a, b string) ([]Difference, error) {
	inA, err := objects(a)
	if err != nil {
		return nil, err
	}
	inB, err := objects(b)
	if err != nil {
		return nil, err
	}
	both := maps.Clone(inA)
	maps.Copy(both, inB)
	var all []Difference
	for _, name := range slices.Sorted(maps.Keys(both)) {
		switch {
		case !inA[name] || !inB[name]:
			all = append(all, Difference{path.Join(objectDir, name), "", -1, "only one of the builds made it"})
		default:
			first, errA := os.ReadFile(filepath.Join(a, name))
			second, errB := os.ReadFile(filepath.Join(b, name))
			if err := errors.Join(errA, errB); err != nil {
				return nil, err
			}
			all = append(all, compareFiles(path.Join(objectDir, name), first, second)...)
		}
	}
	return all, nil
}

func objects(dir string) (map[string]bool, error) {
	names := map[string]bool{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".o" {
			names[name] = true
		}
		return err
	})
	return names, err
}

// compareFiles compares two files, by sections where both are ELF files.
func compareFiles(name string, a, b []byte) []Difference {
	if bytes.Equal(a, b) {
		return nil
	}
	elfA, errA := elf.NewFile(bytes.NewReader(a))
	elfB, errB := elf.NewFile(bytes.NewReader(b))
	if errA == nil && errB == nil {
		if found := compareSections(name, elfA, elfB); len(found) > 0 {
			return found
		}
	}
	return []Difference{difference(name, "", a, b)}
}

// compareSections compares the sections that two ELF files have under the same
// name and at the same place among those of that name.
func compareSections(name string, a, b *elf.File) []Difference {
	inA, inB := sections(a), sections(b)
	both := maps.Clone(inA)
	maps.Copy(both, inB)
	var found []Difference
	for _, key := range slices.SortedFunc(maps.Keys(both), sectionKey.compare) {
		sectionA, sectionB := inA[key], inB[key]
		if sectionA == nil || sectionB == nil {
			found = append(found, Difference{name, key.name, -1, "only one of the builds has it"})
			continue
		}
		dataA, errA := content(sectionA)
		dataB, errB := content(sectionB)
		switch {
		case errA != nil || errB != nil:
			found = append(found, Difference{name, key.name, -1, fmt.Sprintf("not read: %v", errors.Join(errA, errB))})
		case !bytes.Equal(dataA, dataB):
			found = append(found, difference(name, key.name, dataA, dataB))
		}
	}
	return found
}

// sectionKey distinguishes sections of one name, of which objects have many.
type sectionKey struct {
	name  string
	index int // among those of the name
}

func (k sectionKey) compare(other sectionKey) int {
	if k.name != other.name {
		return strings.Compare(k.name, other.name)
	}
	return k.index - other.index
}

func sections(f *elf.File) map[sectionKey]*elf.Section {
	count := map[string]int{}
	all := map[sectionKey]*elf.Section{}
	for _, s := range f.Sections {
		all[sectionKey{s.Name, count[s.Name]}] = s
		count[s.Name]++
	}
	return all
}

// content is what a section has in the file: .bss and the like have nothing.
func content(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL || s.FileSize == 0 {
		return nil, nil
	}
	data := make([]byte, s.FileSize)
	_, err := s.ReadAt(data, 0)
	return data, err
}

// shown is how many bytes of a difference are printed.
const shown = 16

// difference finds the first byte that differs in a and b, which do.
func difference(name, section string, a, b []byte) Difference {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return Difference{name, section, -1, fmt.Sprintf("%d bytes and %d bytes, the same as far as the shorter goes", len(a), len(b))}
	}
	return Difference{name, section, int64(n), fmt.Sprintf("%q and %q", clip(a[n:]), clip(b[n:]))}
}

func clip(data []byte) []byte { return data[:min(len(data), shown)] }

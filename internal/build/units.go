// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
	"github.com/sparsek/sparsek/internal/build/codegen/tuningtable"
)

// unit is one source file to compile.
type unit struct {
	source string // relative to the root, with slashes
	device bool   // nvcc rather than g++
	kernel string // the kernel of the list that it instantiates, or empty
	family string // of that kernel

	sanitized bool // compiled with the sanitizers
}

// object is where its object goes.
func (u unit) object() string {
	if u.sanitized {
		return filepath.Join(sanitizedObjectDir, u.source+".o")
	}
	if path.Dir(u.source) == sandboxGenDir {
		return filepath.Join(sandboxObjectDir, u.source+".o")
	}
	return objectPath(u.source)
}

// sanitize is the same units with the sanitizers in what g++ compiles. nvcc's
// objects stay as they are: the sanitizers know nothing of a GPU's memory.
func sanitize(units []unit) []unit {
	units = slices.Clone(units)
	for i := range units {
		units[i].sanitized = !units[i].device
	}
	return units
}

// memory is what its compiler takes at its peak, in bytes: measured, rounded
// up. CUTLASS's templates are what is large.
func (u unit) memory() int64 {
	switch {
	case u.family == kernels.Collective:
		return 7 << 29
	case u.device:
		return 1 << 30
	default:
		return 512 << 20
	}
}

// weight is how many milliseconds u is expected to take: as many as last time,
// or, where that is 0, what files of its kind take:
// only their ratio matters.
func (u unit) weight(last int64) int64 {
	switch {
	case last > 0:
		return last
	case u.family == kernels.Collective:
		return 80_000
	case u.family == kernels.WgmmaGather:
		return 27_000
	case u.kernel != "":
		return 15_000
	case u.device:
		return 8_000
	default:
		return 3_000
	}
}

// findUnits lists what is to be compiled: the sources in the tree at root and
// the files generated from the list and the tuning table into gen. The longest
// jobs come first, so that none of them is left running alone at the end.
func findUnits(root, gen string, list *kernels.List) ([]unit, error) {
	units := []unit{{source: path.Join(gen, kernels.Registry)}, {source: path.Join(gen, tuningtable.File)}}
	for _, k := range list.Kernels {
		units = append(units, unit{source: path.Join(gen, kernels.InstanceFile(k)), device: true, kernel: k.Name, family: k.Family})
	}
	err := fs.WalkDir(os.DirFS(root), sourceDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if ext := path.Ext(name); ext == ".cpp" || ext == ".cu" {
			units = append(units, unit{source: name, device: ext == ".cu"})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for sources: %w", err)
	}
	slices.SortStableFunc(units, func(a, b unit) int {
		switch {
		case a.memory() > b.memory():
			return -1
		case a.memory() < b.memory():
			return 1
		}
		return strings.Compare(a.source, b.source)
	})
	return units, nil
}

// prune removes from the object folders whatever no unit accounts for, so that
// a source that has gone leaves nothing behind.
func prune(root string, units []unit) error {
	wanted := map[string]bool{stampPath(Library): true, stampPath(SanitizedLibrary): true}
	for _, u := range slices.Concat(units, sanitize(units)) {
		wanted[u.object()] = true
		wanted[stampPath(u.object())] = true
	}
	for _, dir := range []string{objectDir, sanitizedObjectDir} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil || wanted[relative] {
				return err
			}
			return os.Remove(name)
		})
		if err != nil {
			return fmt.Errorf("removing stale objects: %w", err)
		}
	}
	return nil
}

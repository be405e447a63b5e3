// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Change is one difference between two locks.
type Change struct {
	Name     string // as in "nvidia-nvvm version"
	From, To string // "" where there is none
}

func (c Change) String() string {
	or := func(s string) string {
		if s == "" {
			return "(none)"
		}
		return s
	}
	return fmt.Sprintf("%s: %s -> %s", c.Name, or(c.From), or(c.To))
}

// Diff lists what changes between two locks, in the order of the lock.
func Diff(from, to *Lock) []Change {
	var changes []Change
	add := func(name, a, b string) {
		if a != b {
			changes = append(changes, Change{name, a, b})
		}
	}
	a, b := &from.CUTLASS, &to.CUTLASS
	add("cutlass version", a.Version, b.Version)
	add("cutlass constraint", a.Constraint, b.Constraint)
	add("cutlass commit", a.Commit, b.Commit)
	add("cutlass include", a.Include, b.Include)
	add("cutlass tools", a.Tools, b.Tools)
	for i := range max(len(a.Carriers), len(b.Carriers)) {
		add(fmt.Sprintf("cutlass carrier %d", i+1), describe(a.Carriers, i), describe(b.Carriers, i))
	}
	add("cuda version", from.CUDA.Version, to.CUDA.Version)
	before, after := slices.Concat(from.CUDA.Wheels, from.Tools), slices.Concat(to.CUDA.Wheels, to.Tools)
	old := map[string]Package{}
	for _, w := range before {
		old[w.Name] = w
	}
	for _, w := range after {
		was := old[w.Name]
		delete(old, w.Name)
		add(w.Name+" version", was.Version, w.Version)
		add(w.Name+" file", was.File, w.File)
		add(w.Name+" bytes", decimal(was.Bytes), decimal(w.Bytes))
		add(w.Name+" sha256", was.SHA256, w.SHA256)
	}
	for _, w := range before {
		if _, gone := old[w.Name]; gone {
			add(w.Name+" version", w.Version, "")
		}
	}
	return changes
}

// decimal writes a size; none as "".
func decimal(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return strconv.FormatInt(bytes, 10)
}

// describe writes all facts about a carrier; none as "".
func describe(carriers []Carrier, i int) string {
	if i >= len(carriers) {
		return ""
	}
	c := carriers[i]
	if p := c.Package; p != nil {
		return fmt.Sprintf("%s (%s, %d bytes, sha256 %s) at %s", p, p.File, p.Bytes, p.SHA256, c.Prefix)
	}
	return fmt.Sprintf("%s (at most %d bytes) at %s", c.URL, c.MaxBytes, c.Prefix)
}

// Show writes each change from the lock from to the lock to, a line each, and
// says whether there are any. path is the lock's file.
func Show(path string, from, to *Lock, out io.Writer) (changed bool, err error) {
	changes := Diff(from, to)
	if len(changes) == 0 {
		_, err := fmt.Fprintf(out, "%s is up to date\n", path)
		return false, err
	}
	for _, change := range changes {
		if _, err := fmt.Fprintln(out, change); err != nil {
			return true, fmt.Errorf("showing the changes: %w; %s is not written", err, path)
		}
	}
	return true, nil
}

// Replace puts the lock to in the place of from at path, where they differ.
// Before that it shows each change; where that fails, nothing is written.
func Replace(path string, from, to *Lock, out io.Writer) (changed bool, err error) {
	changed, err = Show(path, from, to, out)
	if err != nil || !changed {
		return changed, err
	}
	return true, to.Save(path)
}

// SPDX-License-Identifier: Apache-2.0

package kernelreport

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
	"github.com/sparsek/sparsek/internal/build/sass"
	"github.com/sparsek/sparsek/internal/build/stamp"
)

// Report describes the compiled kernels of one library.
type Report struct {
	Library string   `json:"library_sha256"` // of the library it speaks of
	Kernels []Kernel `json:"kernels"`        // in the order of the list
	Others  []Source `json:"others"`         // device code that is in no list, by source
}

// Kernel is one kernel of the list.
type Kernel struct {
	Name   string       `json:"name"`
	Family string       `json:"family"`
	DType  string       `json:"dtype"`
	Tile   kernels.Tile `json:"tile"`
	Stages int          `json:"stages"`
	// PipelineBytes is the dynamic shared memory of the stages; the epilogue
	// and the barriers take some more.
	PipelineBytes int `json:"pipeline_bytes"`
	Source
}

// Source is the device code of one source file.
type Source struct {
	File      string     `json:"source"`
	Notes     []string   `json:"notes,omitempty"` // warnings and advice of the compiler
	Functions []Function `json:"functions"`
}

// Function is one kernel function. Sizes are bytes a thread, static
// shared memory bytes a block.
type Function struct {
	Symbol       string         `json:"symbol"` // mangled
	Registers    int            `json:"registers"`
	Barriers     int            `json:"barriers"`
	StaticShared int            `json:"static_shared"`
	Stack        int            `json:"stack"`
	SpillStores  int            `json:"spill_stores"`
	SpillLoads   int            `json:"spill_loads"`
	Instructions int            `json:"instructions"`
	Opcodes      map[string]int `json:"opcodes"`     // SASS instructions by the name before the first dot
	SASS         string         `json:"sass_sha256"` // of the machine code
}

// Read reads the report at path and refuses one about another library than the
// one at library.
func Read(path, library string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the kernel report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sum, err := stamp.NewHasher().File(library)
	if err != nil {
		return nil, fmt.Errorf("reading the kernel report: %w", err)
	}
	if sum != r.Library {
		return nil, fmt.Errorf("%s speaks of another library than %s: build again", path, library)
	}
	for _, k := range r.Kernels {
		for _, f := range k.Functions {
			if f.SASS == "" {
				return nil, fmt.Errorf("%s has no hash of the machine code of %s: build again", path, k.Name)
			}
		}
	}
	return &r, nil
}

// Write writes the report to path, whole or not at all, through the folder temp
// on the same file system.
func (r Report) Write(path, temp string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = renameio.WriteFile(path, append(text, '\n'), 0o666, renameio.WithTempDir(temp))
	}
	if err != nil {
		return fmt.Errorf("writing the kernel report: %w", err)
	}
	return nil
}

// Join matches the two lists by symbol. Each kernel must be in both; code
// without figures belongs to functions that kernels call.
func Join(file string, usage []sass.Usage, notes []string, code []sass.Function) (Source, error) {
	s := Source{File: file, Notes: notes, Functions: []Function{}}
	figures := make(map[string]sass.Usage)
	for _, k := range usage {
		figures[k.Symbol] = k
	}
	for _, f := range code {
		k := figures[f.Symbol]
		delete(figures, f.Symbol)
		s.Functions = append(s.Functions, Function{f.Symbol, k.Registers, k.Barriers, k.StaticShared, k.Stack,
			k.SpillStores, k.SpillLoads, f.Total(), f.Opcodes, f.SHA256})
	}
	if len(figures) > 0 {
		return Source{}, fmt.Errorf("no machine code for %s", strings.Join(slices.Sorted(maps.Keys(figures)), ", "))
	}
	return s, nil
}

// Function finds a function of a kernel by its mangled symbol: for a kernel that is not in the list, as those of SDD, among
// all others.
func (r *Report) Function(kernel, symbol string) (Function, bool) {
	sources := r.Others
	for _, k := range r.Kernels {
		if k.Name == kernel {
			sources = []Source{k.Source}
		}
	}
	for _, source := range sources {
		for _, f := range source.Functions {
			if f.Symbol == symbol {
				return f, true
			}
		}
	}
	return Function{}, false
}

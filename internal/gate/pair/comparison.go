// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"os"
	"time"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

const (
	// Margin is the share by which a candidate may be slower.
	Margin = 0.005
	// DefaultBudget is how long after its start a measurement begins further rounds of products close to the margin.
	DefaultBudget = 12 * time.Second
)

// Comparison is what was measured of two libraries on one GPU.
type Comparison struct {
	Date      time.Time   `json:"date"`
	GPU       string      `json:"gpu"`
	Driver    string      `json:"driver,omitempty"` // where nvidia-smi reports it
	State     nvsmi.State `json:"state"`            // of the GPU, at some time
	Commit    string      `json:"commit"`           // of the candidate's sources
	Libraries [2]Library  `json:"libraries"`        // the blessed one, and the candidate
	Swapped   bool        `json:"swapped"`          // the candidate was opened first
	Seed      uint64      `json:"seed"`
	Elapsed   float64     `json:"elapsed_seconds"`
	Cases     []Case      `json:"cases"`
}

// Find gives a case; nil where it was not measured.
func (c *Comparison) Find(name string) *Case {
	if c == nil {
		return nil
	}
	for i := range c.Cases {
		if c.Cases[i].Name == name {
			return &c.Cases[i]
		}
	}
	return nil
}

// Library is a file that was opened.
type Library struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Describe reads a library's hash.
func Describe(file string) (Library, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Library{}, fmt.Errorf("reading a library: %w", err)
	}
	return Library{file, ncu.Hash(text)}, nil
}

// dtypes are the element types of cases by their names.
var dtypes = map[string]sparsek.DType{
	workload.BFloat16.Name: sparsek.BF16, workload.Float16.Name: sparsek.FP16, workload.Float32.Name: sparsek.FP32, workload.Float64.Name: sparsek.FP64,
}

// ProductsOf are the products of cases.
func ProductsOf(cases []bench.Case) []Product {
	var list []Product
	for _, c := range cases {
		list = append(list, Product{c.Name, dtypes[c.DType], c.Form, c.Shape.M, c.Shape.N, c.Shape.K, c.BlockM, c.BlockK, c.Generate})
	}
	return list
}

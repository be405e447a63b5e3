// SPDX-License-Identifier: Apache-2.0

// Package setup is what the example programs begin with: the device that the user chose, and a matrix on it.
package setup

import (
	"context"
	"fmt"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// DeviceUsage describes the flag whose value Engine takes.
const DeviceUsage = "where products run: cpu, cuda, or auto, which is a Hopper GPU where there is one"

// Engine is an engine on the device of that name.
func Engine(device string) (*sparsek.Engine, error) {
	for _, backend := range []sparsek.Backend{sparsek.Auto, sparsek.CPU, sparsek.CUDA} {
		if backend.String() == device {
			return sparsek.NewEngine(sparsek.EngineOptions{Backend: backend})
		}
	}
	return nil, fmt.Errorf("there is no device %q: take auto, cpu or cuda", device)
}

// ReadMatrix reads a sparse matrix in float64, in the blocks that the file has, or single elements where it has none.
func ReadMatrix(path string) (bsr.Matrix[float64], error) {
	entries, err := matio.ReadSparse(path)
	if err != nil {
		return bsr.Matrix[float64]{}, err
	}
	a, _, err := bsr.Convert(entries, max(entries.BlockM, 1), max(entries.BlockK, 1), Exactly)
	return a, err
}

// Exactly is the conversion of float64 to itself.
func Exactly(x float64) float64 { return x }

// Operator multiplies a matrix by vectors in host memory.
type Operator struct {
	Rows, Cols int
	matrix     *sparsek.Matrix
	plan       *sparsek.Plan
}

// NewOperator takes a into the engine and plans products by up to n vectors of float64, whatever type a's values have.
func NewOperator[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], n int) (*Operator, error) {
	matrix, err := sparsek.NewMatrix(ctx, engine, sparsek.BSROf(a))
	if err != nil {
		return nil, err
	}
	plan, err := matrix.Plan(ctx, sparsek.PlanOptions{N: n, DTypeB: sparsek.FP64})
	if err != nil {
		matrix.Close()
		return nil, err
	}
	return &Operator{a.Rows, a.Cols, matrix, plan}, nil
}

// Apply computes y = A x for the columns of x, row-major (Cols, columns). On a GPU it copies both.
func (o *Operator) Apply(ctx context.Context, y, x []float64, columns int) error {
	return o.plan.Multiply(ctx, 1, 0, sparsek.Operands{
		B: sparsek.Dense[float64]{Rows: o.Cols, Cols: columns, Data: x},
		C: sparsek.Dense[float64]{Rows: o.Rows, Cols: columns, Data: y},
	})
}

// Kernel is the kernel of the products.
func (o *Operator) Kernel() string { return o.plan.Info().Kernel }

// Close frees the matrix and its plan.
func (o *Operator) Close() {
	o.plan.Close()
	o.matrix.Close()
}

// Device says in words where an engine computes.
func Device(engine *sparsek.Engine) string {
	info := engine.Info()
	if info.Backend == sparsek.CUDA {
		return fmt.Sprintf("GPU %d", info.Device)
	}
	return fmt.Sprintf("CPU, %d threads, %s", info.Threads, info.ISA)
}

// Describe says in words what a matrix is.
func Describe(a bsr.Matrix[float64]) string {
	return fmt.Sprintf("%d x %d, %d blocks of %d x %d, %.1f a block row",
		a.Rows, a.Cols, a.Blocks(), a.BlockM, a.BlockK, float64(a.Blocks())/float64(max(a.BlockRows, 1)))
}

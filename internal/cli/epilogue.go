// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// epilogueFlags say what is done to the product before it is C.
type epilogueFlags struct {
	OutDType   dtypeFlag      `name:"out-dtype" placeholder:"TYPE" help:"Element type of C and the bias (default: that of --dtype)."`
	Bias       biasFlag       `placeholder:"row|column" help:"Add a random bias: one value for each row, or for each column."`
	Activation activationFlag `placeholder:"NAME" help:"Apply a function to C: relu, gelu or silu."`
}

// outputOf is the type of C where A and B are of that type.
func (o *epilogueFlags) outputOf(dtype dtypeFlag) dtypeFlag {
	if o.OutDType != "" {
		return o.OutDType
	}
	return dtype
}

// newEpilogue makes the epilogue for a C of m x n, with a bias from the file, if one is named, or of the seed. over is
// the number of its values that out made infinite.
func newEpilogue[C sparsek.Element](o *epilogueFlags, biasFile string, out workload.Element[C], m, n int, seed uint64) (e workload.Epilogue[C], over int64, err error) {
	e = workload.Epilogue[C]{BiasKind: o.Bias.Bias, Activation: o.Activation.Activation}
	if biasFile == "" {
		e.Bias = workload.RandomBias[C](workload.BiasLength(e.BiasKind, m, n), seed)
		return e, 0, nil
	}
	var count atomic.Int64
	read, err := matio.ReadDense(biasFile, out.CountOverflow(&count))
	if err != nil {
		return e, 0, fail(exitBadFile, err)
	}
	if e.BiasKind == sparsek.NoBias {
		if e.BiasKind, err = biasOf(len(read.Data), m, n); err != nil {
			return e, 0, failf(exitBadSizes, "%s: %w", biasFile, err)
		}
	}
	if length := workload.BiasLength(e.BiasKind, m, n); min(read.Rows, read.Cols) > 1 || len(read.Data) != length {
		return e, 0, failf(exitBadSizes, "%s: the bias is %d x %d, and %d values are needed, one for each %v of C",
			biasFile, read.Rows, read.Cols, length, e.BiasKind)
	}
	e.Bias = read.Data
	return e, count.Load(), nil
}

// biasOf is the kind of a bias of so many values, where only one fits a C of m x n.
func biasOf(length, m, n int) (sparsek.Bias, error) {
	switch {
	case length == m && length == n:
		return sparsek.NoBias, fmt.Errorf("%d values may be one for each row or for each column of C: add --bias row or --bias column", length)
	case length == m:
		return sparsek.RowBias, nil
	case length == n:
		return sparsek.ColumnBias, nil
	}
	return sparsek.NoBias, fmt.Errorf("the bias has %d values, and C is %d x %d: %d values are needed for its rows, or %d for its columns", length, m, n, m, n)
}

// describeEpilogue is "C in fp32, bias by row, gelu"; empty where there is none.
func describeEpilogue(r *report) string {
	var parts []string
	if r.OutDType != r.DType {
		parts = append(parts, "C in "+r.OutDType)
	}
	if r.Bias != "" {
		parts = append(parts, "bias by "+r.Bias)
	}
	if r.Activation != "" {
		parts = append(parts, r.Activation)
	}
	return strings.Join(parts, ", ")
}

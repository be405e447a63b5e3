// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// choice is a flag that takes one of the values by their names.
type choice[V interface {
	comparable
	fmt.Stringer
}] struct {
	value  V
	values []V
}

func (c *choice[V]) String() string {
	var zero V
	if c.value == zero {
		return ""
	}
	return c.value.String()
}

func (c *choice[V]) Set(text string) error {
	for _, v := range c.values {
		if v.String() == text {
			c.value = v
			return nil
		}
	}
	return fmt.Errorf("want one of %s", c.names())
}

func (c *choice[V]) names() string {
	var names []string
	for _, v := range c.values {
		names = append(names, v.String())
	}
	return strings.Join(names, ", ")
}

// epilogueFlags say what becomes of the product before it is C.
type epilogueFlags struct {
	output     dtypeFlag // "": that of A and B
	bias       choice[sparsek.Bias]
	biasFile   string // of run alone
	activation choice[sparsek.Activation]
}

func newEpilogueFlags(flags *flag.FlagSet) *epilogueFlags {
	o := &epilogueFlags{
		bias:       choice[sparsek.Bias]{values: []sparsek.Bias{sparsek.RowBias, sparsek.ColumnBias}},
		activation: choice[sparsek.Activation]{values: []sparsek.Activation{sparsek.ReLU, sparsek.GELU, sparsek.SiLU}},
	}
	flags.Var(&o.output, "out-dtype", "element `type` of C and the bias (default: that of --dtype)")
	flags.Var(&o.bias, "bias", "add a random bias, one value `for` each row or column")
	flags.Var(&o.activation, "activation", "put C through a `function`: "+o.activation.names())
	return o
}

// validate refuses what does not go together.
func (o *epilogueFlags) validate() error {
	if o.biasFile != "" && o.bias.value == sparsek.NoBias {
		return failf(exitUsage, "run: --bias-file needs --bias row or --bias column")
	}
	return nil
}

// outputOf is the type of C where A and B are of that type.
func (o *epilogueFlags) outputOf(dtype dtypeFlag) dtypeFlag {
	if o.output != "" {
		return o.output
	}
	return dtype
}

// newEpilogue makes the epilogue for a C of m x n, with a bias from the file, if one is named, or of the seed. over is
// the number of its values that out made infinite.
func newEpilogue[C sparsek.Element](o *epilogueFlags, out workload.Element[C], m, n int, seed uint64) (e workload.Epilogue[C], over int64, err error) {
	e = workload.Epilogue[C]{BiasKind: o.bias.value, Activation: o.activation.value}
	length := workload.BiasLength(e.BiasKind, m, n)
	if o.biasFile == "" {
		e.Bias = workload.RandomBias[C](length, seed)
		return e, 0, nil
	}
	var count atomic.Int64
	read, err := matio.ReadDense(o.biasFile, out.CountOverflow(&count))
	if err != nil {
		return e, 0, fail(exitBadFile, err)
	}
	if min(read.Rows, read.Cols) > 1 || len(read.Data) != length {
		return e, 0, failf(exitBadSizes, "%s: the bias is %d x %d, and %d values are needed, one for each %v of C",
			o.biasFile, read.Rows, read.Cols, length, e.BiasKind)
	}
	e.Bias = read.Data
	return e, count.Load(), nil
}

// describeEpilogue is "C in fp32, bias by row, gelu"; empty where there is nothing to tell.
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

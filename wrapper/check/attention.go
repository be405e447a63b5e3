// SPDX-License-Identifier: Apache-2.0

package check

import (
	"runtime"
	"unsafe"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// AttentionOutput is what [Attention] compares.
type AttentionOutput int32

// The outputs.
const (
	O AttentionOutput = iota
	LSE
	GradQ
	GradK
	GradV
	Mass
)

// String is the output's name.
func (o AttentionOutput) String() string {
	names := [...]string{"O", "LSE", "GradQ", "GradK", "GradV", "Mass"}
	if o < 0 || int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

// AttentionArgs are a call of attention and its results, all in host memory.
type AttentionArgs struct {
	Options            sparsek.AttentionOptions
	Operands           sparsek.AttentionOperands // without lengths
	LengthsQ, LengthsK []int32                   // (Batch), or nil
	Info               sparsek.AttentionInfo     // its roundoffs are those of the kernel
	Output             AttentionOutput
	Threads            int // 0: one for each core
}

// Attention compares every element of an output with one in float64 (of float64: with 64 bits of fraction), computed
// straight from the arrays, within the bound that sparsek.h derives. Rows of the report are those of (batch, heads, rows),
// one after the other. If an element is beyond its bound, the error is [sparsek.ErrCheckFailed] and the report is filled in
// all the same.
func Attention[T sparsek.Element, I sparsek.Index](lib *sparsek.Library, layout *sparsek.BSR[T, I], args AttentionArgs) (Report, error) {
	const op = "check attention"
	var pins runtime.Pinner
	defer pins.Unpin()
	options, raw, err := bridge.Attention(op, layout, args.Options, args.Operands, args.Output >= GradQ && args.Output <= GradV, &pins)
	if err != nil {
		return Report{}, err
	}
	for _, lengths := range []struct {
		from []int32
		to   *unsafe.Pointer
	}{{args.LengthsQ, &raw.LengthsQ}, {args.LengthsK, &raw.LengthsK}} {
		if lengths.from == nil {
			continue
		}
		if len(lengths.from) != args.Options.Batch {
			return Report{}, fault("%d lengths of %d sequences", len(lengths.from), args.Options.Batch)
		}
		if len(lengths.from) > 0 {
			*lengths.to = unsafe.Pointer(unsafe.SliceData(lengths.from))
			pins.Pin(*lengths.to)
		}
	}
	r, err := bridge.Library(lib).AttentionCheck(options, raw, int32(args.Output),
		native.AttentionInfo{UnitRoundoff: args.Info.UnitRoundoff, ProductRoundoff: args.Info.ProductRoundoff}, args.Threads)
	return report(r), err
}

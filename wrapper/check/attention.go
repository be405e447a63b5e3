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
	GradBias
)

// String is the output's name.
func (o AttentionOutput) String() string {
	names := [...]string{"O", "LSE", "GradQ", "GradK", "GradV", "Mass", "GradBias"}
	if o < 0 || int(o) >= len(names) {
		return "unknown"
	}
	return names[o]
}

func (o AttentionOutput) isGradient() bool { return o >= GradQ && o <= GradV || o == GradBias }

// AttentionArgs are a call of attention and its results, all in host memory.
type AttentionArgs struct {
	Options            sparsek.AttentionOptions
	Operands           sparsek.AttentionOperands // without lengths, Mask and Pages
	LengthsQ, LengthsK []int32                   // (Batch), or nil
	// As of [sparsek.AttentionMask], or nil.
	MaskIndex, MaskBits []int32
	MaskBlocks          int
	// As Table of [sparsek.AttentionPages], or nil: K and V are then its cache.
	PageTable  []int32
	PageStride int
	Info       sparsek.AttentionInfo // its roundoffs are those of the kernel
	Output     AttentionOutput
	Threads    int // 0: one for each core
}

// Attention compares every element of an output with one in float64 (of float64: with 64 bits of fraction), computed
// straight from the arrays, within the bound that sparsek.h derives. Rows of the report are those of (batch, heads, rows),
// one after the other. If an element is beyond its bound, the error is [sparsek.ErrCheckFailed] and the report is filled in
// all the same.
func Attention[T sparsek.Element, I sparsek.Index](lib *sparsek.Library, layout *sparsek.BSR[T, I], args AttentionArgs) (Report, error) {
	const op = "check attention"
	var pins runtime.Pinner
	defer pins.Unpin()
	if args.PageTable != nil {
		args.Operands.Pages = &sparsek.AttentionPages{Stride: args.PageStride}
	}
	options, raw, err := bridge.Attention(op, layout, args.Options, args.Operands, args.Output.isGradient(), &pins)
	if err != nil {
		return Report{}, err
	}
	indexSize, bitsSize := bridge.MaskSizes(args.Options, options, args.MaskBlocks)
	tableSize := max(0, raw.Pages.TableSize(args.Options.Batch, args.Options.SeqK)) // of a stride that overflows below 0, and refused
	for _, x := range []struct {
		name string
		from []int32
		want int
		to   *unsafe.Pointer
	}{
		{"LengthsQ", args.LengthsQ, args.Options.Batch, &raw.LengthsQ}, {"LengthsK", args.LengthsK, args.Options.Batch, &raw.LengthsK},
		{"MaskIndex", args.MaskIndex, indexSize, &raw.MaskIndex}, {"MaskBits", args.MaskBits, bitsSize, &raw.MaskBits},
		{"PageTable", args.PageTable[:min(tableSize, len(args.PageTable))], tableSize, &raw.Pages.Table},
	} {
		if x.from == nil {
			continue
		}
		if len(x.from) != x.want {
			return Report{}, fault("%s has %d elements where %d are needed", x.name, len(x.from), x.want)
		}
		if len(x.from) > 0 {
			*x.to = unsafe.Pointer(unsafe.SliceData(x.from))
			pins.Pin(*x.to)
		}
	}
	raw.MaskBlocks = args.MaskBlocks
	r, err := bridge.Library(lib).AttentionCheck(options, raw, int32(args.Output),
		native.AttentionInfo{UnitRoundoff: args.Info.UnitRoundoff, ProductRoundoff: args.Info.ProductRoundoff}, args.Threads)
	return report(r), err
}

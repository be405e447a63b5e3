// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// AttentionMask tells which pairs of a block see each other, of blocks of which not all do. It is read when the call runs.
type AttentionMask struct {
	Blocks int // how many blocks have bits
	// Index (block rows of the layout, blocks of keys) has the number of each block's bits, from 0 to Blocks-1, or -1 where all
	// pairs see each other. Without a layout blocks are 128 x 128, and its block rows are those of the queries.
	Index *DeviceBuffer[int32]
	// Bits (Blocks, queries of a block, ceil(keys of a block / 32)) has the pair of query i and key j of a block in bit j % 32 of
	// word j / 32 of row i; the bits of words are those of uint32.
	Bits *DeviceBuffer[int32]
}

// maskSizes are the elements of Index and Bits.
func (o *AttentionOptions) maskSizes(block [2]int, layout bool, masked int) (index, bits int) {
	rows := (o.SeqQ + block[0] - 1) / block[0]
	if layout {
		rows *= max(1, o.LayoutBatch) * max(1, o.LayoutHeads)
	}
	return rows * ((o.SeqK + block[1] - 1) / block[1]), masked * block[0] * ((block[1] + 31) / 32)
}

// mask takes the mask into use.
func (a *Attention) mask(c *call, mask *AttentionMask, args *native.AttentionArgs) {
	if c.err == nil && mask.Blocks < 0 {
		c.err = fault(c.op, ErrBadSize, "Mask.Blocks is %d", mask.Blocks)
	}
	index, bits := a.opts.maskSizes(a.block, a.hasLayout, mask.Blocks)
	args.MaskIndex = at(c, "Mask.Index", mask.Index, index, true)
	args.MaskBits = at(c, "Mask.Bits", mask.Bits, bits, true)
	args.MaskBlocks = mask.Blocks
}

// bias checks the bias, of an O of dtype, and fills to with what address gives.
func (o *AttentionOptions) bias(op string, dtype DType, given HeadsOperand, to *native.Bias,
	address func(name string, h heads) (unsafe.Pointer, error)) error {
	if given == nil {
		return nil
	}
	h := given.heads()
	if h.dtype != dtype && (h.dtype != FP32 || dtype == FP64) {
		return fault(op, ErrBadArgument, "Bias is of %v: it may be of %v, or of float32 where that has 16 bits", h.dtype, dtype)
	}
	want := [4]int{o.Batch, o.HeadsQ, o.SeqQ, o.SeqK}
	stride := h.stride
	if stride == [3]int{} {
		stride = [3]int{h.extents[1] * h.extents[2] * h.extents[3], h.extents[2] * h.extents[3], h.extents[3]}
	}
	to.Stride = [4]int{stride[0], stride[1], stride[2], 1}
	for i := range stride {
		if h.extents[i] == 1 { // shared
			want[i], to.Stride[i] = 1, 0
		}
	}
	if err := h.check(op, "Bias", want, h.dtype); err != nil {
		return err
	}
	data, err := address("Bias", h)
	to.Data, to.DType = data, int32(h.dtype)
	return err
}

// SPDX-License-Identifier: Apache-2.0

package sparsek

import "github.com/sparsek/sparsek/wrapper/internal/native"

// AttentionPages tells in which pages of a cache keys and values lie. How many pages there are and how many rows they have are extents
// of K: on the CPU any number of rows, on a GPU multiples of 16. On a GPU there is neither a Bias nor a Mask then. What is not served
// is refused with [ErrNoSuchKernel], as are Mass and the gradients.
type AttentionPages struct {
	// Table (Batch, ceil(SeqK / rows of a page)) has the page of the keys from j times so many rows on as element j of a batch. It is read
	// when the call runs, so replays of a graph read what it holds by then; what lies behind LengthsK is not looked up. Keys of a page
	// that is none of the cache, as -1, are hidden, and nothing is read of them.
	Table  *DeviceBuffer[int32]
	Stride int // elements from one batch to the next; 0: without gaps
}

// pages is what K and AttentionPages say of the cache, without the table.
func (o *AttentionOperands) pages(op string) (p native.Pages, err error) {
	if o.Pages == nil {
		return p, nil
	}
	if o.K == nil {
		return p, fault(op, ErrNullPointer, "K is nil")
	}
	h := o.K.heads()
	if h.extents[0] < 1 || h.extents[2] < 1 {
		return p, fault(op, ErrBadSize, "K is %v, and a cache has pages, and these rows (pages, heads, rows, size)", h.extents)
	}
	if o.Pages.Stride < 0 {
		return p, fault(op, ErrBadLeadingDimension, "Pages has a Stride of %d", o.Pages.Stride)
	}
	return native.Pages{Stride: o.Pages.Stride, Count: h.extents[0], Rows: h.extents[2]}, nil
}

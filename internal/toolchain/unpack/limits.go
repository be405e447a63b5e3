// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"fmt"
	"io"
)

// Limits bound what an archive may unpack to. Entries that are skipped count
// as well: a decompression bomb does harm even if nothing of it is kept.
type Limits struct {
	Entries int   // files and folders
	Bytes   int64 // unpacked size of all entries together
	Ratio   int64 // unpacked bytes for each byte of the archive
}

// DefaultLimits hold for source trees and compiler packages: 100,000 entries,
// 2 GiB, 200 times the archive's size.
var DefaultLimits = Limits{Entries: 100_000, Bytes: 2 << 30, Ratio: 200}

// ratioFloor is the size that any archive may unpack to, so that a tiny
// archive of a few repetitive files passes.
const ratioFloor = 1 << 20

// budget is the remainder of the limits while an archive is read.
type budget struct {
	entries int
	bytes   int64
	limits  Limits
	why     string // which limit bytes came from
}

func newBudget(l Limits, archive int64) *budget {
	b := &budget{entries: l.Entries, bytes: l.Bytes, limits: l, why: fmt.Sprintf("%d bytes", l.Bytes)}
	if byRatio := max(archive*l.Ratio, ratioFloor); byRatio < b.bytes {
		b.bytes = byRatio
		b.why = fmt.Sprintf("%d bytes (%d times its size)", byRatio, l.Ratio)
	}
	return b
}

func (b *budget) entry() error {
	if b.entries == 0 {
		return fmt.Errorf("%w: more than %d entries", ErrTooBig, b.limits.Entries)
	}
	b.entries--
	return nil
}

// reader deducts the bytes read through it from the budget, and stops when
// the context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
	b   *budget
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	// One byte more than the rest distinguishes "used up" from "too big".
	if int64(len(p)) > r.b.bytes+1 {
		p = p[:r.b.bytes+1]
	}
	n, err := r.r.Read(p)
	if int64(n) > r.b.bytes {
		return 0, fmt.Errorf("%w: unpacks to more than %s", ErrTooBig, r.b.why)
	}
	r.b.bytes -= int64(n)
	return n, err
}

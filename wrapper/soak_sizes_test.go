// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"math/rand/v2"

	. "github.com/sparsek/sparsek/wrapper"
)

// drawSizes makes a product of few tiles, one of long rows, or one with several tiles for each CTA. The soak's terms
// bound its cost.
func (d *draw) drawSizes(s *soak, random *rand.Rand, tileM, tileN int) {
	short := func(whole, block int) int { // of whole blocks, in most cases
		return max(0, whole*block-pick(random, 0, 0, random.IntN(block)))
	}
	n := pick(random, 1, 8, 16, 17, 64, 128, 256, 257, 264, 512, between(random, 1, 300))
	blockRows, blockCols := between(random, 0, 6), between(random, 0, 6)
	limit := s.terms
	switch random.IntN(5) {
	case 0, 1: // few tiles
	case 2: // long rows
		limit /= 4
		blockRows, blockCols = between(random, 1, 4), int(min(200, limit/int64(d.blockM*d.blockK*n)+1))
	default: // several tiles for each CTA
		tiles := s.parallel*between(random, 1, 3) + between(random, 1, s.parallel)
		blockCols = between(random, 1, 4)
		for {
			panels := between(random, 1, min(tiles, 32))
			rows := (tiles + panels - 1) / panels * tileM
			blockRows, n = (rows+d.blockM-1)/d.blockM, short(panels, tileN)
			if int64(rows)*int64(n)*int64(blockCols*d.blockK) <= limit {
				break
			}
			blockCols, tiles = max(1, blockCols/2), max(1, tiles*3/4)
			if tiles == 1 {
				break
			}
		}
	}
	for n > 1 && int64(blockRows*d.blockM)*int64(blockCols*d.blockK)*int64(n) > limit {
		n = (n + 1) / 2
	}
	for blockRows*blockCols > 1 && int64(blockRows*d.blockM)*int64(blockCols*d.blockK)*int64(n) > limit {
		blockRows, blockCols = (blockRows+1)/2, (blockCols+1)/2
	}
	d.rows, d.cols, d.n = short(blockRows, d.blockM), short(blockCols, d.blockK), max(1, n)
}

// drawForm turns the product that was drawn as one of A B into that of its op, with the orders of its operands.
func (d *draw) drawForm(s *soak, random *rand.Rand) {
	switch d.op {
	case DSDT, DDS: // A^T has the sizes and blocks that were drawn
		d.rows, d.cols, d.blockM, d.blockK = d.cols, d.rows, d.blockK, d.blockM
	case SDD:
		d.bias = NoBias
		// Many blocks of short sums in half of the draws.
		cells := int64(d.rows) * int64(d.n)
		if blocks := cells / int64(d.blockM*d.blockK); random.IntN(2) == 0 && blocks <= 1<<17 && cells <= s.terms/16 {
			d.cols, d.n = d.n, max(1, d.cols)
		}
	}
	d.orderX, d.orderB = pick(random, RowMajor, ColumnMajor), pick(random, RowMajor, ColumnMajor)
	if d.op != SDD {
		d.orderX, d.orderC = RowMajor, pick(random, RowMajor, ColumnMajor)
	}
	if batch := between(random, 2, 3); random.IntN(6) == 0 && int64(d.rows)*int64(d.cols)*int64(d.n) <= s.terms/int64(batch) {
		d.batch, d.oneB = batch, random.IntN(2) == 0
	}
	batch := max(1, d.batch)
	line := func(size [2]int, order Order) int {
		if order == ColumnMajor {
			return batch * size[0]
		}
		return size[1]
	}
	x, b, c := d.extents()
	d.gapB = drawGap(random, line(b, d.orderB))
	if d.op == SDD { // whose blocks have no gaps
		d.gapX = drawGap(random, line(x, d.orderX))
	} else {
		d.gapC = drawGap(random, line(c, d.orderC))
	}
}

// drawGap is what lies behind a line of n elements: lines begin at multiples of 8 elements in most cases.
func drawGap(random *rand.Rand, n int) int {
	toEight := (n+7)/8*8 - n
	return pick(random, toEight, toEight, toEight+8, 0, random.IntN(10))
}

func (d *draw) drawAlignment(random *rand.Rand, onGPU bool) {
	least := max(sizeOfType(d.typeA), sizeOfType(d.typeC))
	d.alignment = pick(random, 16, 16, least)
	if !onGPU && !d.operandsOnDevice {
		d.alignment = least // no more is known of a slice
	}
	if d.batch > 1 && !d.batchAligned() {
		d.alignment = min(sizeOfType(d.typeA), sizeOfType(d.typeC))
	}
	d.offsetB = pick(random, 0, 1, 3) * max(1, d.alignment/sizeOfType(d.typeA))
	d.offsetC = pick(random, 0, 1, 5) * max(1, d.alignment/sizeOfType(d.typeC))
}

// batchAligned returns whether every product of the batch has operands that are as aligned as the first one's.
func (d *draw) batchAligned() bool {
	step := func(size [2]int, order Order, gap int) int {
		if order == ColumnMajor {
			return size[0]
		}
		return size[0] * (size[1] + gap)
	}
	x, b, c := d.extents()
	if d.op == SDD {
		c = [2]int{d.blockM, d.blockK}
	}
	return step(x, d.orderX, d.gapX)%8 == 0 && step(b, d.orderB, d.gapB)%8 == 0 && step(c, d.orderC, d.gapC)%8 == 0
}

// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"math"
	"slices"

	"github.com/sparsek/sparsek/internal/matrix/rng"
)

// window takes the blocks (i, j) with |j * rows - i * cols| <= max(rows, cols) * min(rows, cols) * density / 2: for a
// square matrix, a distance of half of density * columns on either side of the diagonal.
func window(spec Spec, _ *rng.Source) rows {
	nr, nc := spec.BlockRows, spec.BlockCols
	reach := int(math.Floor(float64(nr*nc) * spec.Density / 2))
	if spec.Density == 0 {
		return func(int) []int32 { return nil }
	}
	var row []int32
	return func(i int) []int32 {
		// j * nr lies from i*nc - reach to i*nc + reach.
		row = span(row[:0], max(0, i*nc-reach+nr-1)/nr, min(nc, (i*nc+reach)/nr+1))
		return row
	}
}

// causal takes the blocks (i, j) with j * rows <= i * cols.
func causal(spec Spec, _ *rng.Source) rows {
	var row []int32
	return func(i int) []int32 {
		row = span(row[:0], 0, i*spec.BlockCols/spec.BlockRows+1)
		return row
	}
}

// bigbird follows Zaheer et al., "Big Bird: Transformers for Longer Sequences" (2020): of the k blocks of a row, a
// quarter are global columns, half of the rest a window around the diagonal and the others random; as many first rows
// as there are global columns are full. k is the largest number for which all this stays within the density, at
// least 1.
func bigbird(spec Spec, source *rng.Source) rows {
	nr, nc := spec.BlockRows, spec.BlockCols
	global := func(k int) int { return min(k/4, nr) }
	k := perRow(spec.Density, nc)
	for wanted := spec.Density * float64(nr) * float64(nc); k > 1; k-- {
		if g := global(k); float64(g*nc+(nr-g)*k) <= wanted {
			break
		}
	}
	g := global(k)
	width := (k - g + 1) / 2
	s := newSampler(source, nc)
	var row []int32
	return func(i int) []int32 {
		if i < g {
			row = span(row[:0], 0, nc)
			return row
		}
		// The window lies right of the global columns, so that the two never overlap and every row has k blocks.
		first := min(max(i*nc/nr-width/2, g), nc-width)
		last := first + width
		row = span(span(row[:0], 0, g), first, last)
		for _, c := range s.draw(k) { // enough: at most g + width of them are in the row already
			if len(row) == k {
				break
			}
			if int(c) >= g && (int(c) < first || int(c) >= last) {
				row = append(row, c)
			}
		}
		slices.Sort(row)
		return row
	}
}

func blockDiagonal(spec Spec, _ *rng.Source) rows {
	if spec.Density == 0 {
		return func(int) []int32 { return nil }
	}
	squares := squares(spec)
	var row []int32
	return func(i int) []int32 {
		// Square s has the rows from s*rows/squares on; this is its inverse.
		s := ((i+1)*squares - 1) / spec.BlockRows
		row = span(row[:0], s*spec.BlockCols/squares, (s+1)*spec.BlockCols/squares)
		return row
	}
}

// squares is the number of squares of blockdiag.
func squares(spec Spec) int {
	most := min(spec.BlockRows, spec.BlockCols)
	if wanted := math.Round(1 / spec.Density); wanted < float64(most) {
		return int(wanted)
	}
	return most
}

// stencil numbers the columns along a cubic grid, x first, and gives each row the grid point on its diagonal with its
// six neighbours.
func stencil(spec Spec, _ *rng.Source) rows {
	side := gridSide(spec.BlockCols)
	var row []int32
	return func(i int) []int32 {
		c := i * spec.BlockCols / spec.BlockRows
		row = row[:0]
		for _, step := range []int{-side * side, -side, -1, 0, 1, side, side * side} {
			n := c + step
			// A step of one must not leave the line, one of a side not leave the plane.
			inside := n >= 0 && n < spec.BlockCols
			switch step {
			case -1, 1:
				inside = inside && n/side == c/side
			case -side, side:
				inside = inside && n/(side*side) == c/(side*side)
			}
			if inside {
				row = append(row, int32(n))
			}
		}
		return row
	}
}

// stencil27 gives each row the grid point on its diagonal with its neighbours, those across edges and corners too.
func stencil27(spec Spec, _ *rng.Source) rows {
	side := gridSide(spec.BlockCols)
	var row []int32
	return func(i int) []int32 {
		c := i * spec.BlockCols / spec.BlockRows
		x, y, z := c%side, c/side%side, c/side/side
		row = row[:0]
		for pz := max(0, z-1); pz <= z+1; pz++ {
			for py := max(0, y-1); py <= min(side-1, y+1); py++ {
				line := (pz*side + py) * side
				row = span(row, line+max(0, x-1), min(line+min(side, x+2), spec.BlockCols))
			}
		}
		return row
	}
}

// gridSide is the side of the smallest cubic grid with so many points.
func gridSide(points int) int {
	side := 1
	for side*side*side < points {
		side++
	}
	return side
}

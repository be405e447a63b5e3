// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// Block rows that have no block where B holds NaN or Inf get what they would get of a finite B, by every kernel; and
// what a kernel computed again for that is counted.
func TestRecomputed(t *testing.T) {
	onEachKernel(t, testRecomputed[BFloat16], testRecomputed[Float16], testRecomputed[float32], testRecomputed[float64])
}

// Block row 0 alone has a block in column 0, where B holds a NaN and an Inf; column 1 is everyone's.
func testRecomputed[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	const n = 512
	blockRows := max(2, 64/blockM) // those of a warpgroup
	p := newProduct[T, int32](shape{rows: blockRows * blockM, cols: 2 * blockK, n: n, blockM: blockM, blockK: blockK, alpha: 1, kernel: kernel.Name})
	pattern := slices.Repeat([][]int32{{1}}, blockRows)
	pattern[0] = []int32{0, 1}
	p.setPattern(pattern, func() T { return FromFloat32[T](-0.75) })
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), PlanOptions{N: n, Kernel: kernel.Name, Compute: computeOf(kernel.Name)}))(t)
	defer plan.Close()
	multiply := func() (recomputed int64) {
		c := p.newC()
		if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), c)
		return must(plan.Recomputed(context.Background()))(t)
	}
	if again := multiply(); again != 0 {
		t.Errorf("%d slabs were computed again, and B is finite", again)
	}
	p.b.Data[3] = FromFloat32[T](float32(math.NaN()))
	p.b.Data[(blockK-1)*n+5] = FromFloat32[T](float32(math.Inf(-1)))
	want := int64(0)
	multipliesZeros := func(family string) bool { return strings.HasPrefix(kernel.Name, family) }
	if slices.ContainsFunc([]string{"gather_", "packed_", "scatter_", "planes"}, multipliesZeros) {
		want = 4 // the warps of the warpgroup, in the first panel of N
	}
	if multipliesZeros("packed_fp64_") {
		want = 2 // warps of 32 rows by the first 32 columns
	}
	for round := int64(1); round < 3; round++ {
		if again := multiply(); again != round*want {
			t.Errorf("%d slabs were computed again after %d products, want %d", again, round, round*want)
		}
	}
	plan.Close()
	if _, err := plan.Recomputed(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed plan: %v", err)
	}
}

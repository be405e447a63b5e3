// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// kernelsOf are the kernels of a context's back-end.
func kernelsOf(t *testing.T, ctx *Context) []Kernel {
	var own []Kernel
	for _, kernel := range must(ctx.Library().Kernels())(t) {
		if kernel.Backend == ctx.Info().Backend {
			own = append(own, kernel)
		}
	}
	return own
}

// leastBlock is the smallest block that a kernel serves.
func leastBlock(kernel Kernel) (m, k int) {
	return max(1, kernel.BlockM), max(1, kernel.BlockKMultiple)
}

// drawServed draws a product that a kernel may refuse for one reason at most: columns that are no multiple of 8.
func drawServed(t *rapid.T, kernel Kernel) shape {
	blockM, blockK := leastBlock(kernel)
	if kernel.BlockM == 0 || kernel.BlockMMultiples {
		blockM *= rapid.IntRange(1, 2).Draw(t, "times as high")
	}
	blockK *= rapid.IntRange(1, 2).Draw(t, "times as wide")
	extent := func(block int, name string) int {
		whole := rapid.IntRange(1, 3).Draw(t, name)
		return whole*block - rapid.IntRange(0, block-1).Draw(t, name+" short of whole blocks")
	}
	s := shape{rows: extent(blockM, "rows"), cols: extent(blockK, "cols"), blockM: blockM, blockK: blockK}
	const mostProducts = 20 << 20 // for the plain loop that checks them
	s.n = rapid.IntRange(1, min(300, max(8, mostProducts/(s.rows*s.cols)))).Draw(t, "n")
	s.density = rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "density")
	align := (s.n+7)/8*8 - s.n
	gap := rapid.SampledFrom([]int{0, 8})
	s.gapB, s.gapC = align+gap.Draw(t, "gap of B"), align+gap.Draw(t, "gap of C")
	scalar := rapid.SampledFrom([]float32{0, 1, -0.5})
	s.alpha, s.beta = scalar.Draw(t, "alpha"), scalar.Draw(t, "beta")
	s.seed = rapid.Uint64().Draw(t, "seed")
	return s
}

// serves tells whether the library takes the kernel for a product of the shape.
func serves[T Element](t rapid.TB, ctx *Context, kernel string, s shape) bool {
	s.density = 0
	m := must(NewMatrix(ctx, newProduct[T, int32](s).a))(t)
	defer m.Close()
	plan, err := m.Plan(context.Background(), PlanOptions{N: s.n, LDB: s.n + s.gapB, LDC: s.n + s.gapC, Alignment: 16, Kernel: kernel})
	if errors.Is(err, ErrNoSuchKernel) {
		return false
	}
	must(plan, err)(t).Close()
	return true
}

func testKernel[T Element](t *testing.T, ctx *Context, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	ideal := shape{rows: blockM, cols: blockK, n: 8, blockM: blockM, blockK: blockK}
	if ctx.Info().Backend == CPU && !serves[T](t, ctx, kernel.Name, ideal) {
		t.Skip("skipped: not for this processor")
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := drawServed(rt, kernel)
		if !serves[T](rt, ctx, kernel.Name, s) {
			s.n, s.gapB, s.gapC = (s.n+7)/8*8, s.gapB/8*8, s.gapC/8*8
		}
		p := newProduct[T, int32](s)
		p.kernel = kernel.Name
		if rapid.Bool().Draw(rt, "poison") {
			p.poison()
		}
		c, info := p.run(rt, ctx, rapid.Bool().Draw(rt, "in device memory"))
		if info.Kernel != kernel.Name {
			rt.Fatalf("kernel %s ran", info.Kernel)
		}
		p.verify(rt, ctx, info, c)
	})
}

// Each kernel by its name, on blocks that it serves: so the baselines too, which are never chosen.
func TestEachKernel(t *testing.T) {
	onEach(t, func(t *testing.T, ctx *Context) {
		for _, kernel := range kernelsOf(t, ctx) {
			t.Run(kernel.Name, func(t *testing.T) {
				switch kernel.DType {
				case "bf16", "":
					testKernel[BFloat16](t, ctx, kernel)
				case "fp16":
					testKernel[Float16](t, ctx, kernel)
				default:
					testKernel[float32](t, ctx, kernel)
				}
			})
		}
	})
}

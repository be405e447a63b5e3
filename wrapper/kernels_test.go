// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// kernelsOf are our own kernels of an engine's back-end that take A and B of one type; mixedKernelsOf are the others.
func kernelsOf(t *testing.T, engine *Engine) []Kernel {
	var own []Kernel
	for _, kernel := range must(engine.Library().Kernels())(t) {
		if kernel.Backend == engine.Info().Backend && kernel.Library == "" && kernel.DTypeB == 0 {
			own = append(own, kernel)
		}
	}
	return own
}

// kernels are the names of those to try: on the CPU all that run here, or only the best would be; on a GPU the empty name,
// which lets the library choose by the block.
func kernels(t *testing.T, engine *Engine) []string {
	if engine.Info().Backend != CPU {
		return []string{""}
	}
	var names []string
	m := must(NewMatrix(context.Background(), engine, small()))(t)
	defer m.Close()
	for _, kernel := range must(engine.Library().Kernels())(t) {
		if kernel.Backend != CPU {
			continue
		}
		plan, err := m.Plan(context.Background(), PlanOptions{N: 8, Kernel: kernel.Name})
		if errors.Is(err, ErrNoSuchKernel) {
			t.Logf("not run: %v", err) // for lack of instructions
			continue
		}
		must(plan, err)(t).Close()
		names = append(names, kernel.Name)
	}
	return names
}

// onEachKernel runs a test on each kernel of each back-end, the one of its element type.
func onEachKernel(t *testing.T, bf16, fp16, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, kernel := range kernelsOf(t, engine) {
			t.Run(kernel.Name, func(t *testing.T) {
				blockM, blockK := leastBlock(kernel)
				ideal := shape{rows: blockM, cols: blockK, n: 8, blockM: blockM, blockK: blockK, kernel: kernel.Name}
				if engine.Info().Backend == CPU && !serves[BFloat16, BFloat16](t, engine, ideal) {
					t.Skip("skipped: not for this processor")
				}
				ofType(kernel, bf16, fp16, fp32, fp64)(t, engine, kernel)
			})
		}
	})
}

// ofType is the test for a kernel's type; for a kernel of every type, that of bf16.
func ofType(kernel Kernel, bf16, fp16, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) func(t *testing.T, engine *Engine, kernel Kernel) {
	switch kernel.DType {
	case BF16, 0:
		return bf16
	case FP16:
		return fp16
	case FP64:
		return fp64
	default:
		return fp32
	}
}

// onFamily runs a test on each kernel of the GPU whose name begins with prefix. There must be one.
func onFamily(t *testing.T, prefix string, bf16, fp16, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	engine := newEngine(t, CUDA)
	found := false
	for _, kernel := range kernelsOf(t, engine) {
		if strings.HasPrefix(kernel.Name, prefix) {
			found = true
			t.Run(kernel.Name, func(t *testing.T) { ofType(kernel, bf16, fp16, fp32, fp64)(t, engine, kernel) })
		}
	}
	if !found {
		t.Errorf("no kernel is named %s...", prefix)
	}
}

// isForOneBlock returns whether a kernel serves the smallest of its blocks alone, whatever its multiples.
func isForOneBlock(kernel Kernel) bool { return strings.HasPrefix(kernel.Name, "window_") }

// isSkinnyFMA returns whether a kernel is for few columns of fp32 or fp64.
func isSkinnyFMA(kernel Kernel) bool {
	return strings.HasPrefix(kernel.Name, "skinny_fp32_") || strings.HasPrefix(kernel.Name, "skinny_fp64_")
}

// computeOf is what a plan must allow for a kernel, by its name.
func computeOf(kernel string) Compute {
	if strings.HasPrefix(kernel, "tf32_") {
		return TF32
	}
	return Exact
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
	if !isForOneBlock(kernel) {
		blockK *= rapid.IntRange(1, 2).Draw(t, "times as wide")
	}
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
	s.kernel = kernel.Name
	s.seed = rapid.Uint64().Draw(t, "seed")
	return s
}

// serves returns whether the library takes the kernel for a product of the shape with a C of elements C.
func serves[T, C Element](t rapid.TB, engine *Engine, s shape) bool {
	s.density = 0
	p := newProductTo[T, C, int32](s)
	m := must(p.matrix(engine))(t)
	defer m.Close()
	plan, err := m.Plan(context.Background(), p.planOptions(16))
	if errors.Is(err, ErrNoSuchKernel) {
		return false
	}
	must(plan, err)(t).Close()
	return true
}

func testKernel[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	anyEpilogue := serves[T, T](t, engine, shape{rows: blockM, cols: blockK, n: 8, blockM: blockM, blockK: blockK,
		activation: ReLU, kernel: kernel.Name})
	anyRowsOfB := serves[T, T](t, engine, shape{rows: blockM, cols: blockK, n: 3, blockM: blockM, blockK: blockK, kernel: kernel.Name})
	rapid.Check(t, func(rt *rapid.T) {
		s := drawServed(rt, kernel)
		if anyRowsOfB && rapid.Bool().Draw(rt, "rows of B anywhere") {
			s.gapB = rapid.IntRange(0, 9).Draw(rt, "gap of B")
		}
		if !anyEpilogue || rapid.Bool().Draw(rt, "plain") {
			testKernelTo[T, T](rt, engine, s)
			return
		}
		s.bias, s.activation = drawEpilogue(rt)
		if DTypeOf[T]() == FP64 {
			testKernelTo[T, T](rt, engine, s)
			return
		}
		switch rapid.SampledFrom([]DType{BF16, FP16, FP32}).Draw(rt, "type of C") {
		case BF16:
			testKernelTo[T, BFloat16](rt, engine, s)
		case FP16:
			testKernelTo[T, Float16](rt, engine, s)
		case FP32:
			testKernelTo[T, float32](rt, engine, s)
		}
	})
}

func testKernelTo[T, C Element](t *rapid.T, engine *Engine, s shape) {
	if !serves[T, C](t, engine, s) {
		s.n, s.gapB, s.gapC = (s.n+7)/8*8, s.gapB/8*8, s.gapC/8*8
	}
	if info := testProduct[T, C, int32](t, engine, s); info.Kernel != s.kernel {
		t.Fatalf("kernel %s ran", info.Kernel)
	}
}

// Each kernel by its name, on blocks that it serves: so the baselines too, which are never chosen.
func TestEachKernel(t *testing.T) {
	onEachKernel(t, testKernel[BFloat16], testKernel[Float16], testKernel[float32], testKernel[float64])
}

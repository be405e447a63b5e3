// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// onEachFloat32Kernel runs a test on each kernel that multiplies float32 without rounding elements.
func onEachFloat32Kernel(t *testing.T, test func(t *testing.T, engine *Engine, kernel Kernel)) {
	skip := func(t *testing.T, _ *Engine, _ Kernel) { t.Skip("skipped: a kernel of another type") }
	onEachKernel(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		if kernel.DType != 0 {
			skip(t, engine, kernel)
		}
		test(t, engine, kernel)
	}, skip, func(t *testing.T, engine *Engine, kernel Kernel) {
		if computeOf(kernel.Name) != Exact {
			t.Skip("skipped: a kernel that rounds elements first")
		}
		test(t, engine, kernel)
	}, skip)
}

// full is a number with all 24 bits of a float32 in use, of an exponent from first to last. Below -126 the lowest bits are
// lost.
func full(random *rand.Rand, first, last int) float32 {
	fraction := 1 + float64(random.IntN(1<<23)|1)/(1<<23)
	return float32(math.Copysign(math.Ldexp(fraction, first+random.IntN(last-first+1)), random.Float64()-0.5))
}

// magnitudes are the exponents of A and B: each product of theirs is finite, and the sum of 64 too.
var magnitudes = []struct {
	name                         string
	firstA, lastA, firstB, lastB int
}{
	{"about one", -1, 1, -1, 1},
	{"far apart", -40, 40, -40, 40},
	{"small by large", -149, -110, 90, 120},
	{"large by small", 90, 120, -149, -110},
	{"largest", 127, 127, -10, -2},
	{"products that are subnormal", -80, -60, -75, -60},
}

// multiplyFloat32 computes C = A B, with finite operands.
func multiplyFloat32(t *testing.T, engine *Engine, p *product[float32, float32, int32]) (Dense[float32], PlanInfo) {
	t.Helper()
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
	defer plan.Close()
	c := p.newC()
	if err := plan.Multiply(context.Background(), p.alpha, p.beta, p.operands(p.b, c, p.bias)); err != nil {
		t.Fatal(err)
	}
	p.verifyGuards(t, c)
	if again := must(plan.Recomputed(context.Background()))(t); again != 0 {
		t.Errorf("%d slabs were computed again", again)
	}
	return c, plan.Info()
}

// tolerance is what a product of a and b may be off by: two units in the last place, and where a factor is subnormal as
// much as its smallest unit makes.
func tolerance(a, b float64) float64 {
	const smallestNormal, smallest = 0x1p-126, 0x1p-149
	tolerance := math.Ldexp(math.Abs(a*b), -22) + 2*smallest
	if math.Abs(a) < smallestNormal {
		tolerance += smallest * math.Abs(b)
	}
	if math.Abs(b) < smallestNormal {
		tolerance += smallest * math.Abs(a)
	}
	return tolerance
}

// A matrix with one element in each row: each element of C is one product, of which no bit may be missing that a float32
// has. That is far less than what the bound of 64 products allows.
func TestFloat32Bits(t *testing.T) {
	onEachFloat32Kernel(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		for i, magnitude := range magnitudes {
			blocks := [][2]int{{64, 64}, {8, 32}, {32, 32}, {24, 96}, {96, 96}, {192, 64}}
			if kernel.BlockKMultiple == 16 {
				blocks = [][2]int{{16, 16}, {8, 16}, {16, 48}, {24, 48}, {48, 48}, {128, 16}}
			}
			block := blocks[i]
			t.Run(fmt.Sprintf("%s, %dx%d", magnitude.name, block[0], block[1]), func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				const size, n = 384, 136
				shape := shape{rows: size, cols: size, n: n, blockM: block[0], blockK: block[1], alpha: 1, kernel: kernel.Name}
				if !serves[float32, float32](t, engine, shape) {
					t.Skip("skipped: larger blocks than the kernel serves")
				}
				p := newProduct[float32, int32](shape)
				var rows [][]int32
				for row := 0; row < size; row += block[0] {
					var cols []int32
					for col := row; col < row+block[0]; col += block[1] {
						cols = append(cols, int32(col/block[1]))
					}
					rows = append(rows, cols)
				}
				p.setPattern(rows, func() float32 { return 0 })
				at := func(row int) *float32 { // of the diagonal
					inRow := row % block[0]
					stored := int(p.a.RowPtr[row/block[0]]) + inRow/block[1]
					return &p.a.Values[(stored*block[0]+inRow)*block[1]+row%block[1]]
				}
				for i := range size {
					*at(i) = full(random, magnitude.firstA, magnitude.lastA)
				}
				for i := range p.b.Data {
					p.b.Data[i] = full(random, magnitude.firstB, magnitude.lastB)
				}
				c, _ := multiplyFloat32(t, engine, p)
				for i := range size {
					for j := range n {
						want := float64(*at(i)) * float64(p.b.Data[i*p.b.Stride+j])
						got, tolerance := float64(c.Data[i*c.Stride+j]), tolerance(float64(*at(i)), float64(p.b.Data[i*p.b.Stride+j]))
						if math.Abs(got-want) > tolerance {
							t.Fatalf("C[%d, %d] = %g, want %g = %g * %g within %g", i, j, got, want, *at(i), p.b.Data[i*p.b.Stride+j], tolerance)
						}
					}
				}
			})
		}
	})
}

// Sums of many products stay within the bound of a chain of float32 FMAs.
func TestFloat32Sums(t *testing.T) {
	onEachFloat32Kernel(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		for _, depth := range []int{64, 1024, 8192} {
			for _, positive := range []bool{false, true} {
				for _, magnitude := range magnitudes[:2] {
					t.Run(fmt.Sprintf("%d %s, positive: %t", depth, magnitude.name, positive), func(t *testing.T) {
						random := rand.New(rand.NewPCG(2, uint64(depth)))
						number := func(first, last int) float32 {
							x := full(random, first, last)
							if positive {
								x = float32(math.Abs(float64(x)))
							}
							return x
						}
						shape := shape{rows: 192, cols: depth, n: 130, blockM: 64, blockK: 64, density: 1, alpha: 1, kernel: kernel.Name}
						if !serves[float32, float32](t, engine, shape) {
							t.Skip("skipped: larger blocks than the kernel serves")
						}
						p := newProduct[float32, int32](shape)
						every := make([]int32, depth/64)
						for i := range every {
							every[i] = int32(i)
						}
						p.setPattern([][]int32{every, every[:1], every}, func() float32 { return number(magnitude.firstA, magnitude.lastA) })
						for i := range p.b.Data {
							p.b.Data[i] = number(magnitude.firstB, magnitude.lastB)
						}
						c, info := multiplyFloat32(t, engine, p)
						report, err := check.Product(engine.Library(), p.a, p.checkArgs(c, info))
						if err != nil {
							t.Errorf("%v\n%+v", err, report)
						}
						t.Logf("error / bound: %.3g at most; largest error / largest sum: %.3g", report.MaxRatio, report.MaxError/report.MaxAbsC)
					})
				}
			}
		}
	})
}

// Many panels of columns and many rows of A, so that a kernel may prepare the later panels while it computes the first;
// with few workers too, each of which then has many tiles, and with rows of B that lie anywhere.
func TestFloat32ManyPanels(t *testing.T) {
	onEachFloat32Kernel(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		for _, workers := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
				shape := shape{rows: 640, cols: 180, n: 1501, blockM: 64, blockK: 64, gapB: workers, density: 1,
					alpha: 1, kernel: kernel.Name, seed: 4}
				if !serves[float32, float32](t, engine, shape) {
					t.Skip("skipped: larger blocks than the kernel serves")
				}
				p := newProduct[float32, int32](shape)
				all := [][]int32{{0, 1, 2}, {0, 1, 2}, {0, 1}, {0, 1, 2}, {0, 1, 2}, {1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}}
				random := rand.New(rand.NewPCG(3, 3))
				p.setPattern(all, func() float32 { return full(random, -1, 1) })
				m := must(NewMatrix(context.Background(), engine, p.a))(t)
				defer m.Close()
				options := p.planOptions(4)
				options.Workers = workers
				plan := must(m.Plan(context.Background(), options))(t)
				defer plan.Close()
				for range 3 { // what a product leaves in the plan's memory is none of the next one's business
					for i := range p.b.Data {
						p.b.Data[i] = full(random, -1, 1)
					}
					c := p.newC()
					if err := plan.Multiply(context.Background(), p.alpha, p.beta, p.operands(p.b, c, p.bias)); err != nil {
						t.Fatal(err)
					}
					p.verifyGuards(t, c)
					p.verifyByCheck(t, engine, plan.Info(), c)
				}
			})
		}
	})
}

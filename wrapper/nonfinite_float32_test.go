// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// onPlanes runs a test on each kernel that multiplies float32 by planes.
func onPlanes(t *testing.T, test func(t *testing.T, engine *Engine, kernel Kernel)) {
	skip := func(*testing.T, *Engine, Kernel) {}
	onFamily(t, "planes", skip, skip, test, skip)
	onFamily(t, "packed_fp32_", skip, skip, test, skip)
}

// Sums of so many products that parts of them are set aside, and so many columns that their planes are made while others
// are multiplied.
func TestNonFiniteLongSums(t *testing.T) {
	onPlanes(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		_, blockK := leastBlock(kernel)
		for _, block := range [][2]int{{8, blockK}, {64, 2 * blockK}} {
			long := shape{rows: block[0] + 40, cols: 3200, n: 136, density: 0.6}
			wide := shape{rows: 1024, cols: 3 * block[1], n: 1300, density: 0.8}
			for _, s := range []shape{long, wide} {
				s.blockM, s.blockK, s.alpha, s.kernel = block[0], block[1], 1, kernel.Name
				for name, of := range nonFinite {
					t.Run(fmt.Sprintf("%dx%d by %d, %s", s.blockM, s.blockK, s.n, name), func(t *testing.T) {
						s.seed = uint64(s.blockM + len(name))
						p := newProduct[float32, int32](s)
						p.put(of(rand.New(rand.NewPCG(s.seed, 1)), s.cols, s.n))
						c, info := p.run(t, engine, true)
						p.verifyByCheck(t, engine, info, c)
					})
				}
			}
		}
	})
}

// NaN and Inf in A reach the elements of its rows, with a finite B and with one that has both too.
func TestNonFiniteValues(t *testing.T) {
	onPlanes(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		blockM, blockK := leastBlock(kernel)
		tall := 192
		if strings.HasPrefix(kernel.Name, "packed_") {
			tall = 128 // the highest that it takes
		}
		for _, block := range [][2]int{{64, 2 * blockK}, {2 * blockM, blockK}, {tall, blockK}} {
			for _, every := range []int{20, 3000} {
				p := newProduct[float32, int32](shape{rows: block[0] + 70, cols: 9 * block[1], n: 200, blockM: block[0], blockK: block[1], density: 0.5, alpha: 1, seed: uint64(every), kernel: kernel.Name})
				random := rand.New(rand.NewPCG(6, uint64(every)))
				for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
					for i := range p.a.Values {
						if random.IntN(every) == 0 {
							p.a.Values[i] = float32(x)
						}
					}
				}
				p.infinite = true
				c, info := p.run(t, engine, true)
				p.verify(t, engine, info, c)
				p.put(nonFinite["here and there"](random, p.b.Rows, p.n))
				c, info = p.run(t, engine, true)
				p.verify(t, engine, info, c)
			}
		}
	})
}

// A number of A that is not 0 times Inf is Inf, however small the number is.
func TestTinyTimesInf(t *testing.T) {
	onPlanes(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		blockM, blockK := leastBlock(kernel)
		for _, block := range [][2]int{{64, 2 * blockK}, {blockM, blockK}} {
			p := newProduct[float32, int32](shape{rows: 3 * block[0], cols: 4 * block[1], n: 136, blockM: block[0], blockK: block[1], density: 0.7, alpha: 1, seed: 2, kernel: kernel.Name})
			random := rand.New(rand.NewPCG(4, 4))
			for i := range p.a.Values {
				p.a.Values[i] = math.Float32frombits(1 + random.Uint32()>>(8+random.IntN(24)))
			}
			infinite := rand.New(rand.NewPCG(5, 5))
			p.put(func(_, _ int) float64 { return choose(infinite.IntN(30) == 0, math.Inf(1)) })
			for _, onDevice := range []bool{false, true} {
				c, info := p.run(t, engine, onDevice)
				p.verifyByCheck(t, engine, info, c)
			}
		}
	})
}

// Sums that float32 holds, of products of which bfloat16 holds none: they are computed again, and to the last bit.
func TestLargeProducts(t *testing.T) {
	onPlanes(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		_, blockK := leastBlock(kernel)
		p := newProduct[float32, int32](shape{rows: 64, cols: 2 * blockK, n: 136, blockM: 64, blockK: blockK, density: 0, alpha: 1, kernel: kernel.Name})
		p.setPattern([][]int32{{0, 1}}, func() float32 { return 0 })
		for i := range p.a.Values {
			if i%blockK == 0 {
				p.a.Values[i] = math.Float32frombits(0x7f7fffff) // the largest
			}
		}
		for i := range p.b.Data {
			p.b.Data[i] = 0.99999994
		}
		for j := range p.n {
			p.b.Data[blockK*p.b.Stride+j] = -0.99999994 * float32(j%2)
		}
		p.infinite = true // some sums are computed again
		c, info := p.run(t, engine, false)
		p.verifyByCheck(t, engine, info, c)
	})
}

// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math"
	"slices"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// cutOff leaves out the bits of fraction that TF32 does not have.
func cutOff(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1<<13 - 1)) }

// fractions is a product of numbers with all bits of fraction, of one sign.
func fractions() *product[float32, float32, int32] {
	p := newProduct[float32, int32](shape{rows: 96, cols: 160, n: 40, blockM: 16, blockK: 32, density: 0.6, alpha: 1, seed: 11})
	for i := range p.a.Values {
		p.a.Values[i] = 1 + float32(i%997)/997
	}
	for i := range p.b.Data {
		p.b.Data[i] = 1 + float32(i%1009)/1009
	}
	return p
}

// On the CPU, elements that may be rounded are not.
func TestTF32OnTheCPU(t *testing.T) {
	engine := newEngine(t, CPU)
	p := fractions()
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	var sums [][]float32
	for _, compute := range []Compute{Exact, TF32} {
		plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, Compute: compute}))(t)
		if r := plan.Info().ProductRoundoff; r != 0 {
			t.Errorf("%v: products are off by %g", compute, r)
		}
		c := Dense[float32]{Rows: p.a.Rows, Cols: p.n, Data: make([]float32, p.a.Rows*p.n)}
		if err := plan.Multiply(context.Background(), 1, 0, Operands{B: p.b, C: c}); err != nil {
			t.Fatal(err)
		}
		p.verifyByCheck(t, engine, plan.Info(), c)
		sums = append(sums, c.Data)
		if err := plan.Close(); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(sums[0], sums[1]) {
		t.Error("the sums differ")
	}
}

func TestTF32IsForFloat32(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		options := PlanOptions{N: 8, Compute: TF32}
		of16 := must(NewMatrix(context.Background(), engine, newProduct[BFloat16, int32](shape{rows: 64, cols: 64, n: 8, blockM: 16, blockK: 16, density: 0.5, alpha: 1}).a))(t)
		defer of16.Close()
		_, err := of16.Plan(context.Background(), options)
		wantFault(t, err, ErrBadArgument, "SPARSEK_COMPUTE_TF32 (1) is for matrices of fp32")
		options.Compute = 2
		_, err = of16.Plan(context.Background(), options)
		wantFault(t, err, ErrBadArgument, "compute = 2")
	})
}

// A kernel that rounds elements is refused where the plan does not allow it.
func TestTF32IsAskedFor(t *testing.T) {
	engine := newEngine(t, CUDA)
	m := must(NewMatrix(context.Background(), engine, newProduct[float32, int32](shape{rows: 128, cols: 128, blockM: 128, blockK: 128, density: 1}).a))(t)
	defer m.Close()
	_, err := m.Plan(context.Background(), PlanOptions{N: 40, Kernel: "tf32_fp32_128_256"})
	wantFault(t, err, ErrNoSuchKernel, "compute does not allow")
}

// Where it is allowed, a plan takes such a kernel, and else none.
func TestTF32IsChosen(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, edge := range []int{64, 128} {
		m := must(NewMatrix(context.Background(), engine, newProduct[float32, int32](shape{rows: 4096, cols: 4096, blockM: edge, blockK: edge, density: 0.2, alpha: 1, seed: 3}).a))(t)
		defer m.Close()
		for _, compute := range []Compute{Exact, TF32} {
			plan := must(m.Plan(context.Background(), PlanOptions{N: 4096, Compute: compute, OwnKernels: true, NoUserCache: true}))(t)
			info := plan.Info()
			if rounds := computeOf(info.Kernel) == TF32; rounds != (compute == TF32) || rounds != (info.ProductRoundoff > 0) {
				t.Errorf("%v, blocks of %d: %s, products are off by %g", compute, edge, info.Kernel, info.ProductRoundoff)
			}
			if err := plan.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// On a GPU, elements are cut off, and the plan says so. Of every product, whatever the orders of its operands.
func TestTF32OnTheGPU(t *testing.T) {
	engine := newEngine(t, CUDA)
	for kernel, edge := range map[string]int{"tf32_fp32_64x2_256": 64, "tf32_fp32_128_256": 128} {
		t.Run(kernel, func(t *testing.T) {
			eachMajor(t, func(t *testing.T, s opShape) {
				for _, n := range []int{4, 64, 200, 520} {
					for place := range indexPlaces {
						s.beta = 0.5
						testTF32[float32](t, engine, kernel, edge, s, n, place)
					}
				}
				s.beta = 0 // and C is stored as it is
				testTF32[float32](t, engine, kernel, edge, s, 46, 0)
				testTF32[Float16](t, engine, kernel, edge, s, 46, 0)
				testTF32[BFloat16](t, engine, kernel, edge, s, 46, 0)
			})
		})
	}
}

func testTF32[C Element](t *testing.T, engine *Engine, kernel string, edge int, s opShape, n int, place indexPlace) {
	t.Helper()
	s.blockM, s.blockK = edge, 96
	if s.op == DSDT || s.op == DDS { // of A^T
		s.blockM, s.blockK = 96, edge
	}
	s.rows, s.cols, s.n = 4*s.blockM-4, 5*s.blockK-8, n
	s.density, s.alpha, s.seed = 0.6, 1.5, uint64(n)
	runTF32[C](t, engine, kernel, s, place, 0)
}

// Two CTAs of a cluster share A. Lengths are multiples of 4, as the kernel asks of columns of B.
func TestTF32InClusters(t *testing.T) {
	engine := newEngine(t, CUDA)
	for kernel, edge := range map[string]int{"tf32_fp32_64x2_256": 64, "tf32_fp32_128_256": 128} {
		t.Run(kernel, func(t *testing.T) {
			eachMajor(t, func(t *testing.T, s opShape) {
				for _, short := range []int{0, 4} {
					s.shape = shape{rows: 1024 - short, cols: 1024 - short, n: 1280 - short, blockM: edge, blockK: edge, density: 0.9, alpha: 1, seed: 17}
					if info := runTF32[float32](t, engine, kernel, s, indexPlace(short)%indexPlaces, 4); info.TileN != 512 {
						t.Errorf("tiles of %d columns: %+v", info.TileN, info)
					}
				}
			})
		})
	}
}

// runTF32 multiplies by a kernel and checks the result. workers: 0: as many as the plan takes.
func runTF32[C Element](t *testing.T, engine *Engine, kernel string, s opShape, place indexPlace, workers int) PlanInfo {
	t.Helper()
	c := newOpCase[float32, C, int32](s)
	for i := range c.b.data { // a number of TF32, and as much more as it has no room for
		c.b.data[i] += c.b.data[i] * 0x1p-12
	}
	options := c.options()
	options.Kernel, options.Compute, options.Workers = kernel, TF32, workers
	result, info := c.runOnDevice(t, engine, place, options)
	if info.Kernel != kernel || info.ProductRoundoff != 0x1p-9 {
		t.Errorf("%s ran, and products are off by %g", info.Kernel, info.ProductRoundoff)
	}
	c.verifyByCheck(t, engine, info, result)
	return info
}

// A column-major B that TMA cannot read is not copied into the same order.
func TestTF32OfMisalignedColumns(t *testing.T) {
	engine := newEngine(t, CUDA)
	a := newProduct[float32, int32](shape{rows: 128, cols: 126, blockM: 128, blockK: 128, density: 1}).a
	m := must(NewMatrix(context.Background(), engine, a))(t)
	defer m.Close()
	_, err := m.Plan(context.Background(), PlanOptions{N: 8, OrderB: ColumnMajor, Kernel: "tf32_fp32_128_256", Compute: TF32})
	wantFault(t, err, ErrNoSuchKernel, "must be aligned to 16 bytes")
}

// Operands that are cut off are within the bound that counts it, and within no other.
func TestCheckCountsRoundedElements(t *testing.T) {
	engine := newEngine(t, CPU)
	exact, rounded := fractions(), fractions()
	for i, x := range rounded.a.Values {
		rounded.a.Values[i] = cutOff(x)
	}
	for i, x := range rounded.b.Data {
		rounded.b.Data[i] = cutOff(x)
	}
	c, info := rounded.run(t, engine, false)
	report := func(roundoff float64) (check.Report, error) {
		args := exact.checkArgs(c, info)
		args.ProductRoundoff = roundoff
		return check.Product(engine.Library(), exact.a, args)
	}
	_, err := report(0)
	wantFault(t, err, ErrCheckFailed, "beyond their bound")
	const cut = 0x1p-9 + 0x1p-20 // two factors that are less than 2^-10 too small
	if found, err := report(cut); err != nil || found.MaxRatio > 1 || found.MaxRatio < 0.25 {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = report(cut / 8)
	wantFault(t, err, ErrCheckFailed, "beyond their bound")

	of16 := newProduct[BFloat16, int32](shape{rows: 32, cols: 32, n: 8, blockM: 16, blockK: 16, density: 0.5, alpha: 1})
	c16, info16 := of16.run(t, engine, false)
	args := of16.checkArgs(c16, info16)
	args.ProductRoundoff = cut
	_, err = check.Product(engine.Library(), of16.a, args)
	wantFault(t, err, ErrBadArgument, "product_roundoff")
}

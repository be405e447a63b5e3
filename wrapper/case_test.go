// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// product is a product on paper: its operands with room between and behind the rows.
type product[T Element, I Index] struct {
	a           BSR[T, I]
	n           int
	b, c0       Dense[T]
	alpha, beta float32
	kernel      string // by name; empty: the library chooses
}

// shape is what a product is made from.
type shape struct {
	rows, cols, n  int
	blockM, blockK int
	density        float64 // of blocks; whole block rows stay empty here and there
	gapB, gapC     int     // elements behind each row
	alpha, beta    float32
	seed           uint64
}

// guardBand elements lie behind C; they and those between its rows must stay what they are.
const guardBand = 64

func guardValue[T Element]() T { return FromFloat32[T](-12345) }

func newProduct[T Element, I Index](s shape) *product[T, I] {
	random := rand.New(rand.NewPCG(s.seed, 7))
	value := func() T { return FromFloat32[T](float32(random.IntN(513)-256) / 128) }
	p := &product[T, I]{n: s.n, alpha: s.alpha, beta: s.beta}
	p.a = BSR[T, I]{Rows: s.rows, Cols: s.cols, BlockM: s.blockM, BlockK: s.blockK, RowPtr: []I{0}, Values: []T{}}
	for range (s.rows + s.blockM - 1) / s.blockM {
		if random.IntN(6) > 0 {
			for col := range (s.cols + s.blockK - 1) / s.blockK {
				if random.Float64() >= s.density {
					continue
				}
				p.a.ColIdx = append(p.a.ColIdx, I(col))
				for range s.blockM {
					for k := range s.blockK {
						v := value()
						if col*s.blockK+k >= s.cols {
							v = 0
						}
						p.a.Values = append(p.a.Values, v)
					}
				}
			}
		}
		p.a.RowPtr = append(p.a.RowPtr, I(len(p.a.ColIdx)))
	}
	dense := func(rows, gap, behind int, fill T) Dense[T] {
		d := Dense[T]{Rows: rows, Cols: s.n, Stride: s.n + gap, Data: make([]T, rows*(s.n+gap)+behind)}
		for i := range d.Data {
			d.Data[i] = fill
		}
		for i := range rows {
			for j := range s.n {
				d.Data[i*d.Stride+j] = value()
			}
		}
		return d
	}
	nan := FromFloat32[T](float32(math.NaN()))
	p.b = dense(s.cols, s.gapB, 0, nan)
	p.c0 = dense(s.rows, s.gapC, guardBand, guardValue[T]())
	return p
}

// poison makes NaN or Inf of the rows of B that no block reads, and of C where it must not be read.
func (p *product[T, I]) poison() {
	read := make(map[int]bool)
	for _, col := range p.a.ColIdx {
		for k := range p.a.BlockK {
			read[int(col)*p.a.BlockK+k] = true
		}
	}
	for k := range p.b.Rows {
		if !read[k] {
			for j := range p.n {
				p.b.Data[k*p.b.Stride+j] = FromFloat32[T](float32(math.Inf(1 - 2*(j&1))))
				if j%3 == 0 {
					p.b.Data[k*p.b.Stride+j] = FromFloat32[T](float32(math.NaN()))
				}
			}
		}
	}
	if p.beta == 0 {
		for i := range p.c0.Rows {
			for j := range p.n {
				p.c0.Data[i*p.c0.Stride+j] = FromFloat32[T](float32(math.NaN()))
			}
		}
	}
}

func (p *product[T, I]) newC() Dense[T] {
	c := p.c0
	c.Data = append([]T(nil), p.c0.Data...)
	return c
}

// verify compares c with a plain loop in float64, with the library's own check, and looks at the guard bands.
func (p *product[T, I]) verify(t rapid.TB, ctx *Context, info PlanInfo, c Dense[T]) {
	t.Helper()
	for i := range c.Data {
		row, col := 0, i
		if c.Stride > 0 {
			row, col = i/c.Stride, i%c.Stride
		}
		if (row >= c.Rows || col >= c.Cols) && c.Data[i] != guardValue[T]() {
			t.Fatalf("element %d, outside of C, was written: row %d, column %d", i, row, col)
		}
	}
	sum, bound := make([]float64, p.n), make([]float64, p.n)
	for i := range p.a.Rows {
		clear(sum)
		clear(bound)
		terms := 0
		blockRow := i / p.a.BlockM
		for e := int(p.a.RowPtr[blockRow]); e < int(p.a.RowPtr[blockRow+1]); e++ {
			for k := range p.a.BlockK {
				row := int(p.a.ColIdx[e])*p.a.BlockK + k
				if row >= p.a.Cols {
					continue
				}
				terms++
				v := float64(ToFloat32(p.a.Values[(e*p.a.BlockM+i%p.a.BlockM)*p.a.BlockK+k]))
				for j := range p.n {
					term := v * float64(ToFloat32(p.b.Data[row*p.b.Stride+j]))
					sum[j] += term
					bound[j] += math.Abs(term)
				}
			}
		}
		for j := range p.n {
			want := float64(p.alpha) * sum[j]
			tolerance := float64(terms+4) * info.UnitRoundoff * 2 * math.Abs(float64(p.alpha)) * bound[j]
			if p.beta != 0 {
				c0 := float64(p.beta) * float64(ToFloat32(p.c0.Data[i*p.c0.Stride+j]))
				want += c0
				tolerance += math.Ldexp(math.Abs(c0), -22)
			}
			tolerance += 2*roundoff[T]()*math.Abs(want) + math.Ldexp(1, -24)
			got := float64(ToFloat32(c.Data[i*c.Stride+j]))
			if !(math.Abs(got-want) <= tolerance) {
				t.Fatalf("C[%d, %d] = %g, want %g within %g", i, j, got, want, tolerance)
			}
		}
	}
	report, err := Check(ctx.Library(), p.a, CheckArgs[T]{Alpha: p.alpha, Beta: p.beta, B: p.b, C0: p.c0, C: c, UnitRoundoff: info.UnitRoundoff})
	if err != nil {
		t.Fatalf("%v\n%+v", err, report)
	}
	if report.Elements != int64(p.a.Rows)*int64(p.n) || report.Failures != 0 || report.MaxRatio > 1 {
		t.Fatalf("check of %d x %d elements: %+v", p.a.Rows, p.n, report)
	}
}

// run multiplies by way of host memory, or of device memory, and gives C. Operands are aligned to 16 bytes, as the fast
// kernels need it, where the strides allow that, and to an element else.
func (p *product[T, I]) run(t rapid.TB, ctx *Context, onDevice bool) (Dense[T], PlanInfo) {
	t.Helper()
	m := must(NewMatrix(ctx, p.a))(t)
	defer m.Close()
	alignment, offsetB, offsetC := sizeOf[T](), 3, 5
	if p.b.Stride%8 == 0 && p.c0.Stride%8 == 0 {
		alignment, offsetB, offsetC = 16, 8, 16
	}
	plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, LDB: p.b.Stride, LDC: p.c0.Stride, Alignment: alignment, Kernel: p.kernel}))(t)
	defer plan.Close()
	c := p.newC()
	if !onDevice {
		if err := plan.Multiply(context.Background(), p.alpha, p.b, p.beta, c); err != nil {
			t.Fatal(err)
		}
		return c, plan.Info()
	}
	upload := func(d Dense[T], offset int) DeviceDense[T] {
		buffer := must(NewBuffer[T](ctx, len(d.Data)+offset))(t)
		padded := append(make([]T, offset), d.Data...)
		if err := buffer.Write(padded); err != nil {
			t.Fatal(err)
		}
		return DeviceDense[T]{Rows: d.Rows, Cols: d.Cols, Stride: d.Stride, Buffer: buffer, Offset: offset}
	}
	b, dc := upload(p.b, offsetB), upload(c, offsetC)
	defer b.Buffer.Close()
	defer dc.Buffer.Close()
	if err := plan.Multiply(context.Background(), p.alpha, b, p.beta, dc); err != nil {
		t.Fatal(err)
	}
	padded := make([]T, dc.Buffer.Len())
	if err := dc.Buffer.Read(padded); err != nil {
		t.Fatal(err)
	}
	c.Data = padded[dc.Offset:]
	return c, plan.Info()
}

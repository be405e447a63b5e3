// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

func TestTimeDense(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		const m, n, k = 16, 32, 24 // all different, so that no two of them can be confused
		matrix := func(rows, cols int) DeviceDense[BFloat16] {
			buffer := must(NewBuffer[BFloat16](engine, rows*cols))(t)
			host := make([]BFloat16, rows*cols)
			for i := range host {
				host[i] = ToBFloat16(float32(i/cols%5 - i%cols%3))
			}
			if err := buffer.Write(context.Background(), host); err != nil {
				t.Fatal(err)
			}
			return DeviceDense[BFloat16]{Rows: rows, Cols: cols, Buffer: buffer}
		}
		var sets []timing.DenseOperands[BFloat16]
		for range 2 {
			sets = append(sets, timing.DenseOperands[BFloat16]{A: matrix(m, k), B: matrix(k, n), C: matrix(m, n)})
		}
		options := timing.DenseOptions[BFloat16]{Operands: sets, Warmup: 1, Repeats: 3}
		times, err := timing.Dense(context.Background(), engine, options)
		if engine.Info().Backend == CPU {
			wantFault(t, err, ErrNoLibrary, "cuBLAS")
		} else if errors.Is(err, ErrNoLibrary) {
			t.Run("cuBLAS", func(t *testing.T) { t.Skipf("skipped: %v", err) })
		} else if err != nil || len(times) != 3 {
			t.Fatalf("%d times, error %v", len(times), err)
		} else {
			checkDense(t, times, sets)
		}

		options.Operands = []timing.DenseOperands[BFloat16]{sets[0], {A: sets[0].A, B: sets[0].C, C: sets[0].C}}
		_, err = timing.Dense(context.Background(), engine, options)
		wantFault(t, err, ErrBadSize, "B is 16 x 32 where 24 x 32 is needed")
		options.Operands = []timing.DenseOperands[BFloat16]{{A: sets[0].A, B: sets[0].B, C: DeviceDense[BFloat16]{Rows: m, Cols: n}}}
		_, err = timing.Dense(context.Background(), engine, options)
		wantFault(t, err, ErrNullPointer, "C has no buffer")
		options.Operands = nil
		_, err = timing.Dense(context.Background(), engine, options)
		wantFault(t, err, ErrBadSize, "no operands")
		options.Operands, options.Repeats = sets, 0
		_, err = timing.Dense(context.Background(), engine, options)
		wantFault(t, err, ErrBadSize, "0 repeats")
	})
}

// checkDense compares with sums of small whole numbers, which bfloat16 holds exactly.
func checkDense(t *testing.T, times []time.Duration, sets []timing.DenseOperands[BFloat16]) {
	for _, d := range times {
		if d <= 0 || d > time.Minute {
			t.Errorf("a product took %v", d)
		}
	}
	for _, set := range sets {
		m, k, n := set.A.Rows, set.A.Cols, set.B.Cols
		a, b, c := make([]BFloat16, m*k), make([]BFloat16, k*n), make([]BFloat16, m*n)
		if err := errors.Join(set.A.Buffer.Read(context.Background(), a), set.B.Buffer.Read(context.Background(), b), set.C.Buffer.Read(context.Background(), c)); err != nil {
			t.Fatal(err)
		}
		for i := range c {
			var want float32
			for j := range k {
				want += a[i/n*k+j].Float32() * b[j*n+i%n].Float32()
			}
			if got, want := c[i], ToBFloat16(want); got != want {
				t.Fatalf("C[%d, %d] = %g, want %g", i/n, i%n, got.Float32(), want.Float32())
			}
		}
	}
}

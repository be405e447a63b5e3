// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// A product that is not the one of the matrix is found in each of the block rows that are looked at, and nowhere else.
func TestCheckSample(t *testing.T) {
	lib, err := sparsek.Default()
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []sparsek.Backend{sparsek.CPU, sparsek.CUDA} {
		t.Run(backend.String(), func(t *testing.T) {
			engine, err := lib.NewEngine(sparsek.EngineOptions{Backend: backend})
			if errors.Is(err, sparsek.ErrNoDevice) {
				t.Skip("skipped: no GPU")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			testWrong(t, engine)
		})
	}
}

func testWrong(t *testing.T, engine *sparsek.Engine) {
	testWrongOfForms(t, engine)
	const m, n, k, block = 256, 192, 320, 64
	ctx := context.Background()
	p, err := pattern.Generate(pattern.Spec{Name: "window", BlockRows: m / block, BlockCols: k / block, Density: 0.4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a := RandomA[sparsek.BFloat16](p, m, k, block, block, 1)
	sets, err := NewSets[sparsek.BFloat16](t.Context(), engine, Form{}.Sizes(Shape{m, n, k}, len(a.Values), block), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Close()
	rotation, err := NewRotation(ctx, engine, a, RotationOptions{N: n, Copies: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rotation.Close()
	if err := CheckSample(ctx, engine, a, rotation, sets); err != nil {
		t.Errorf("the right one: %v", err)
	}
	for r := range p.BlockRows {
		other := a
		other.Values = slices.Clone(a.Values)
		other.Values[int(p.RowPtr[r])*block*block+7] += 0x100
		err := CheckSample(ctx, engine, other, rotation, sets)
		looked := r == 0 || r == p.BlockRows/2 || r == p.BlockRows-1
		if looked != errors.Is(err, ErrWrong) || !looked && err != nil {
			t.Errorf("block row %d: %v", r, err)
		}
	}
	// A NaN in A makes the row of C NaN.
	broken := a
	broken.Values = slices.Clone(a.Values)
	broken.Values[0] = 0x7fff
	nan, err := NewRotation(ctx, engine, broken, RotationOptions{N: n, Copies: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer nan.Close()
	if err := CheckSample(ctx, engine, a, nan, sets); !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "C[0, 0]") {
		t.Errorf("NaN in C: %v", err)
	}
}

// In every form a wrong value is found in a part that is looked at, and in no other.
func testWrongOfForms(t *testing.T, engine *sparsek.Engine) {
	const m, n, k, bm, bk = 250, 96, 430, 32, 48
	p, err := pattern.Generate(pattern.Spec{Name: "random", BlockRows: 8, BlockCols: 9, Density: 0.4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a := RandomA[sparsek.BFloat16](p, m, k, bm, bk, 1)
	orders := []sparsek.Order{sparsek.RowMajor, sparsek.ColumnMajor}
	for _, op := range []sparsek.Op{sparsek.DSD, sparsek.DSDT, sparsek.DDS, sparsek.DDST, sparsek.SDD} {
		for _, order := range orders {
			f := Form{Op: op, OrderB: order, OrderC: order}
			if op == sparsek.SDD {
				f.OrderX, f.OrderC = order, sparsek.RowMajor
			}
			sets, err := NewSets[sparsek.BFloat16](t.Context(), engine, f.Sizes(Shape{m, n, k}, len(a.Values), bk), 1)
			if err != nil {
				t.Fatal(err)
			}
			rotation, err := NewRotation(t.Context(), engine, a, RotationOptions{N: n, Form: f, Copies: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckSample(t.Context(), engine, a, rotation, sets); err != nil {
				t.Errorf("%+v, the right one: %v", f, err)
			}
			if op == sparsek.SDD { // whose blocks do not depend on A's values
				sets.hostB(0)[3] += 0x100
				if err := CheckSample(t.Context(), engine, a, rotation, sets); !errors.Is(err, ErrWrong) {
					t.Errorf("%+v, another B on the host: %v", f, err)
				}
			} else {
				testWrongValues(t, engine, a, f, rotation, sets)
			}
			if err := errors.Join(rotation.Close(), sets.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func testWrongValues(t *testing.T, engine *sparsek.Engine, a bsr.Matrix[sparsek.BFloat16], f Form, rotation *Rotation[sparsek.BFloat16], sets *Sets[sparsek.BFloat16]) {
	for r := range a.BlockRows {
		for i := a.RowPtr[r]; i < a.RowPtr[r+1]; i++ {
			other := a
			other.Values = slices.Clone(a.Values)
			other.Values[int(i)*a.BlockM*a.BlockK+7] += 0x100
			part, count := r, a.BlockRows
			if f.Op == sparsek.DSDT || f.Op == sparsek.DDS {
				part, count = int(a.ColIdx[i]), a.BlockCols
			}
			looked := part == 0 || part == count/2 || part == count-1
			if err := CheckSample(t.Context(), engine, other, rotation, sets); looked != errors.Is(err, ErrWrong) || !looked && err != nil {
				t.Fatalf("%+v, block %d of part %d: %v", f, i, part, err)
			}
		}
	}
}

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
	const m, n, k, block = 256, 192, 320, 64
	ctx := context.Background()
	p, err := pattern.Generate(pattern.Spec{Name: "window", BlockRows: m / block, BlockCols: k / block, Density: 0.4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a := RandomA[sparsek.BFloat16](p, m, k, block, block, 1)
	sets, err := NewSets[sparsek.BFloat16](t.Context(), engine, []Shape{{m, n, k}}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Close()
	rotation, err := NewRotation(ctx, engine, a, RotationOptions{N: n, Copies: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rotation.Close()
	if err := CheckSample(ctx, engine, a, n, rotation, sets); err != nil {
		t.Errorf("the right one: %v", err)
	}
	for r := range p.BlockRows {
		other := a
		other.Values = slices.Clone(a.Values)
		other.Values[int(p.RowPtr[r])*block*block+7] += 0x100
		err := CheckSample(ctx, engine, other, n, rotation, sets)
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
	if err := CheckSample(ctx, engine, a, n, nan, sets); !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "C[0, 0]") {
		t.Errorf("NaN in C: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// In a period each library has each variant twice, at the same mean place.
func TestSequence(t *testing.T) {
	for seed := range uint64(50) {
		list := sequenceOf(2, rand.New(rand.NewPCG(seed, 0)))
		if len(list) != 2*period {
			t.Fatalf("%d turns", len(list))
		}
		for p := range 2 {
			var count [sides][variants]int
			var place [sides]int
			for i, s := range list[p*period : (p+1)*period] {
				count[s][i%variants]++
				place[s] += i
			}
			if count != [sides][variants]int{{2, 2, 2}, {2, 2, 2}} || place[0] != place[1] {
				t.Errorf("seed %d: %v, places %v", seed, count, place)
			}
		}
	}
}

// Two copies of the library work in one process, and share operands.
func TestTwoLibraries(t *testing.T) {
	lib := os.Getenv("SPARSEK_LIBRARY")
	if lib == "" {
		t.Skip("skipped: SPARSEK_LIBRARY names no library")
	}
	text, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "libsparsek.so")
	if err := os.WriteFile(other, text, 0o755); err != nil {
		t.Fatal(err)
	}
	small := Product{Name: "small", DType: sparsek.BF16, M: 256, N: 64, K: 256, BlockM: 64, BlockK: 64, Generate: func() (bsr.Pattern, error) {
		return pattern.Generate(pattern.Spec{Name: "random", BlockRows: 4, BlockCols: 4, Density: 0.5, Seed: 1})
	}}
	wide := small
	wide.Name, wide.DType, wide.M, wide.K, wide.BlockM, wide.BlockK = "wide", sparsek.FP32, 12, 12, 3, 3
	products := append([]Product{small, wide}, ofEveryForm(small)...)
	cases, err := Measure(t.Context(), Options{Libraries: [2]string{lib, other}, Products: products, Margin: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases[2:] {
		if c.New != "" || c.Seconds[0] <= 0 || c.Plans[0] != c.Plans[1] || c.Plans[0].Kernel == "" {
			t.Errorf("%+v", c)
		}
	}
	if c := cases[1]; c.Seconds[0] <= 0 || c.Plans[0] != c.Plans[1] || c.Plans[0].Kernel == "" {
		t.Errorf("%+v", c)
	}
	c := cases[0]
	first, second, again := digestOf(t, lib, 0), digestOf(t, lib, 1), digestOf(t, lib, 1)
	if c.Plans[0].Digest == "" || first == second || second != again {
		t.Errorf("digests: %q, then %q, %q and %q", c.Plans[0].Digest, first, second, again)
	}
	if len(c.Rounds) < firstRounds || c.Seconds[0] <= 0 || c.Seconds[1] <= 0 || math.IsNaN(c.Ratio) || c.Plans[0] != c.Plans[1] ||
		c.Plans[0].Kernel == "" {
		t.Errorf("%+v", c)
	}
}

// ofEveryForm are the products of the matrix besides A B, with operands of either order.
func ofEveryForm(p Product) (list []Product) {
	p.M, p.Generate = 512, func() (bsr.Pattern, error) {
		return pattern.Generate(pattern.Spec{Name: "random", BlockRows: 8, BlockCols: 4, Density: 0.5, Seed: 1})
	}
	for _, op := range []sparsek.Op{sparsek.DSDT, sparsek.SDD, sparsek.DDS, sparsek.DDST} {
		for _, order := range []sparsek.Order{sparsek.RowMajor, sparsek.ColumnMajor} {
			p.Name, p.Form = fmt.Sprintf("%v, %v", op, order), workload.Form{Op: op, OrderB: order, OrderC: order}
			if op == sparsek.SDD {
				p.Form.OrderX, p.Form.OrderC = order, sparsek.RowMajor
			}
			list = append(list, p)
		}
	}
	return list
}

// What a library does not know is an error of its own, for products besides A B.
func TestUnknownProduct(t *testing.T) {
	lib := os.Getenv("SPARSEK_LIBRARY")
	if lib == "" {
		t.Skip("skipped: SPARSEK_LIBRARY names no library")
	}
	d, err := openDevice(false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	l, err := openLibrary(lib)
	if err == nil {
		err = l.start(false, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	values, err := d.allocate(2 * 64 * 64)
	if err != nil {
		t.Fatal(err)
	}
	defer d.release(values)
	one := bsr.Pattern{BlockRows: 1, BlockCols: 1, RowPtr: []int32{0, 1}, ColIdx: []int32{0}}
	for _, c := range []struct {
		form    workload.Form
		n       int
		unknown bool
	}{{workload.Form{Op: 77}, 8, true}, {workload.Form{Op: sparsek.DSDT}, -1, false}, {workload.Form{OrderB: 77}, 8, false}} {
		_, err := d.plan(l, &Product{DType: sparsek.BF16, Form: c.form, M: 64, N: c.n, K: 64, BlockM: 64, BlockK: 64}, one, values)
		if err == nil || errors.Is(err, errUnknown) != c.unknown {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// digestOf is that of a plan for two block rows of one block each, the first of which lies in that column: plans of both
// columns have as many tiles and entries.
func digestOf(t *testing.T, lib string, column int32) string {
	t.Helper()
	d, err := openDevice(false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	l, err := openLibrary(lib)
	if err == nil {
		err = l.start(false, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	values, err := d.allocate(2 * 2 * 64 * 64)
	if err != nil {
		t.Fatal(err)
	}
	defer d.release(values)
	p, err := d.plan(l, &Product{DType: sparsek.BF16, M: 128, N: 64, K: 128, BlockM: 64, BlockK: 64},
		bsr.Pattern{BlockRows: 2, BlockCols: 2, RowPtr: []int32{0, 1, 2}, ColIdx: []int32{column, 1 - column}}, values)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	info, err := p.info()
	if err != nil {
		t.Fatal(err)
	}
	return info.Digest
}

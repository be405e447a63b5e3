// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio/testdata"
)

// unpack lays the files out in a temporary folder, for the functions that take paths.
func unpack(t testing.TB) (folder string, names []string) {
	t.Helper()
	folder = t.TempDir()
	files, err := fs.Sub(testdata.SciPy, "scipy")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, files); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return folder, names
}

func same(x float64) float64 { return x }

func isSparse(name string) bool {
	return strings.HasSuffix(name, ".npz") || strings.HasSuffix(name, ".mtx") || strings.HasSuffix(name, ".mtx.gz")
}

// dense sums entries into an array.
func dense(e *bsr.Entries) []float64 {
	values := make([]float64, e.Rows*e.Cols)
	for i, v := range e.Value {
		at := int(e.Row[i])*e.Cols + int(e.Col[i])
		values[at] += v
		if e.Boolean {
			values[at] = min(1, values[at])
		}
	}
	return values
}

// Every file must give the matrix that SciPy itself reads from it.
func TestReadsWhatSciPyWrites(t *testing.T) {
	folder, names := unpack(t)
	count := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".expect.npy") || strings.HasPrefix(name, "refused_") {
			continue
		}
		count++
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, name)
			want, err := ReadDense(path+".expect.npy", same)
			if err != nil {
				t.Fatal(err)
			}
			var got Dense[float64]
			if isSparse(name) {
				e, err := ReadSparse(path)
				if err != nil {
					t.Fatal(err)
				}
				got = Dense[float64]{e.Rows, e.Cols, dense(e)}
			} else if got, err = ReadDense(path, same); err != nil {
				t.Fatal(err)
			}
			if got.Rows != want.Rows || got.Cols != want.Cols {
				t.Fatalf("%d x %d, want %d x %d", got.Rows, got.Cols, want.Rows, want.Cols)
			}
			for i, v := range got.Data {
				// SciPy sums repeated f8 entries in another order.
				if w := want.Data[i]; v != w && math.Abs(v-w) > 1e-14 {
					t.Fatalf("(%d, %d) = %v, want %v", i/want.Cols, i%want.Cols, v, w)
				}
			}
		})
	}
	if count < 60 {
		t.Errorf("only %d files", count)
	}
}

// The element type that matters for signs of zero, order and infinities is compared to the bit.
func TestDenseBits(t *testing.T) {
	folder, _ := unpack(t)
	d, err := ReadDense(filepath.Join(folder, "dense_f4_F.npy"), same)
	if err != nil {
		t.Fatal(err)
	}
	if d.Rows != 5 || d.Cols != 7 || !math.IsInf(d.Data[0], 1) || !math.IsInf(d.Data[1], -1) || !math.Signbit(d.Data[2]) {
		t.Errorf("%d x %d, %v", d.Rows, d.Cols, d.Data[:3])
	}
}

func TestRefusesByName(t *testing.T) {
	folder, names := unpack(t)
	want := map[string]string{
		"refused_complex.npz":   `"<c16" is complex`,
		"refused_complex.mtx":   "line 1: the field is complex",
		"refused_hermitian.mtx": "line 1: the field is complex",
		"refused_complex.npy":   `"<c16" is complex`,
		"refused_integers.npy":  "elements of type i8: f2, f4 and f8",
		"refused_cube.npy":      "3 dimensions",
		"refused_objects.npy":   "pickled Python objects",
		"refused_structure.npy": "structures, not numbers",
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "refused_") {
			continue
		}
		path := filepath.Join(folder, name)
		var err error
		if isSparse(name) {
			_, err = ReadSparse(path)
		} else {
			_, err = ReadDense(path, same)
		}
		if err == nil || want[name] == "" || !strings.Contains(err.Error(), want[name]) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: %v, want %q", name, err, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

// The stiffness matrix must come back with its own blocks: assembled of 3 x 3 ones, no fill-in but their zeros.
func TestElasticityKeepsItsBlocks(t *testing.T) {
	folder, _ := unpack(t)
	e, err := ReadSparse(filepath.Join(folder, "elasticity_bsr.npz"))
	if err != nil {
		t.Fatal(err)
	}
	blocking, err := bsr.Block(e, 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	m, fill, err := bsr.Values(blocking, same)
	if err != nil {
		t.Fatal(err)
	}
	// 27 nodes; each is coupled with the nodes of its cells: 8, 12, 18 or 27 of them.
	if want := 8*8 + 12*12 + 6*18 + 27; m.Blocks() != want || m.BlockRows != 27 {
		t.Errorf("%d block rows with %d blocks, want 27 with %d", m.BlockRows, m.Blocks(), want)
	}
	if fill.Stored != int64(m.Blocks()*9) || fill.Ratio() < 1 {
		t.Errorf("fill %+v", fill)
	}
}

func TestOddPaths(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "a.txt")
	if err := os.WriteFile(text, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		text:                             "ends in none of .mtx, .mtx.gz and .npz",
		filepath.Join(folder, "no.mtx"):  "no such file",
		filepath.Join(folder, "..", "."): "not a regular file",
	} {
		if _, err := ReadSparse(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

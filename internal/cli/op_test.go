// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/wrapper/matio"
)

// transposedOf is a matrix turned over.
func transposedOf(a matio.Dense[float64]) matio.Dense[float64] {
	out := matio.Dense[float64]{Rows: a.Cols, Cols: a.Rows, Data: make([]float64, len(a.Data))}
	for i := range a.Rows {
		for j := range a.Cols {
			out.Data[j*a.Rows+i] = a.Data[i*a.Cols+j]
		}
	}
	return out
}

// Each product of a matrix from a file, in either order of its operands, is the one that a plain loop computes.
func TestRunOps(t *testing.T) {
	needLibrary(t)
	folder := files(t)
	a := readDense(t, filepath.Join(folder, "skew_real.mtx.expect.npy"))
	const n = 4
	for _, op := range []string{"dsd", "dsd_t", "dds", "dds_t"} {
		for _, columns := range []string{"", "b", "bc"} {
			left := a
			if op == "dsd_t" || op == "dds_t" {
				left = transposedOf(a)
			}
			turned := strings.HasPrefix(op, "dds")
			bPath, cPath := filepath.Join(t.TempDir(), "b.npy"), filepath.Join(t.TempDir(), "c.npy")
			rows, cols := left.Cols, n
			if turned {
				rows, cols = n, left.Rows
			}
			b := writeB(t, bPath, rows, cols)
			args := []string{"run", "--matrix", filepath.Join(folder, "skew_real.mtx"), "--block", "2x3", "--dtype", "fp32", "--op", op, "--b", bPath, "--out", cPath, "--check", "--repeats", "1", "--device", "cpu"}
			if columns != "" {
				args = append(args, "--column-major", columns)
			}
			code, stdout, stderr := invoke(args...)
			if code != exitOK || !strings.Contains(stdout, "within their bounds") {
				t.Fatalf("%s, %q: code %d: %s%s", op, columns, code, stdout, stderr)
			}
			got := readDense(t, cPath)
			at := func(i, j int) (want float64) {
				if turned {
					for k := range left.Rows {
						want += float64(b.Data[i*b.Cols+k]) * left.Data[k*left.Cols+j]
					}
					return want
				}
				for k := range left.Cols {
					want += left.Data[i*left.Cols+k] * float64(b.Data[k*b.Cols+j])
				}
				return want
			}
			for i := range got.Rows {
				for j := range got.Cols {
					if math.Abs(got.Data[i*got.Cols+j]-at(i, j)) > 1e-4 {
						t.Fatalf("%s, %q: C[%d, %d] is %v, want %v", op, columns, i, j, got.Data[i*got.Cols+j], at(i, j))
					}
				}
			}
		}
	}
}

// Blocks of a product of two dense matrices, and what the JSON says of products.
func TestRunSDD(t *testing.T) {
	needLibrary(t)
	for _, columns := range []string{"x", "xb"} {
		code, stdout, stderr := invoke("run", "--op", "sdd", "--pattern", "random", "--density", "0.5", "--size", "64x33x96", "--block", "16x32", "--dtype", "bf16",
			"--column-major", columns, "--json", "--check", "--repeats", "1", "--device", "cpu")
		if code != exitOK {
			t.Fatalf("code %d: %s", code, stderr)
		}
		var r report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		if r.Op != "sdd" || r.ColumnMajor != columns || r.N != 33 || r.Check == nil || r.Check.Elements != r.Blocks*16*32 || r.CopiesB != (columns == "xb") || r.CopiesC {
			t.Errorf("%s", stdout)
		}
	}
	for args, want := range map[string]string{
		"--op sdd --bias row":               "--op sdd has no bias",
		"--op sdd --column-major c":         "C of --op sdd is blocks",
		"--column-major x":                  "X is for --op sdd",
		"--column-major z":                  "want letters of x, b and c",
		"--op xyz":                          "dsd_t",
		"--op dds --column-major bc --n 20": "--n is for",
	} {
		code, _, stderr := invoke(append([]string{"run", "--pattern", "random", "--size", "64x32x96", "--device", "cpu"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d: %s", args, code, stderr)
		}
	}
}

// Measurements of one product are not those of another.
func TestTuneOps(t *testing.T) {
	needLibrary(t)
	t.Setenv("SPARSEK_TUNING_CACHE", filepath.Join(t.TempDir(), "tuning.txt"))
	for _, op := range []string{"dsd", "dsd_t", "sdd"} {
		code, _, stderr := invoke("tune", "--op", op, "--size", "64x32x64", "--block", "8", "--dtype", "fp32", "--device", "cpu", "--budget", "1ms")
		if code != exitOK {
			t.Fatalf("%s: code %d: %s", op, code, stderr)
		}
	}
	code, stdout, stderr := invoke("cache", "list", "--json")
	if code != exitOK || !strings.Contains(stdout, `"dsd_t"`) || !strings.Contains(stdout, `"sdd"`) || !strings.Contains(stdout, `"dsd"`) {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// Each type of A and B with each of C, and each kind of bias and activation in its turn.
func TestEpilogues(t *testing.T) {
	needLibrary(t)
	biases, functions := []string{"", "row", "column"}, []string{"", "relu", "gelu", "silu"}
	for i, dtype := range dtypes {
		for j, out := range dtypes {
			bias, function := biases[(i+j)%3], functions[(2*i+j)%4]
			args := []string{"--out-dtype", out, "--dtype", dtype, "--json", "--device", deviceFor(dtype)}
			if bias != "" {
				args = append(args, "--bias", bias)
			}
			if function != "" {
				args = append(args, "--activation", function)
			}
			code, stdout, stderr := invoke(append([]string{"run", "--pattern", "random", "--size", "70x33x96", "--block", "16", "--check", "--repeats", "1"}, args...)...)
			if (dtype == "fp64") != (out == "fp64") {
				if code != exitUnsupported || !strings.Contains(stderr, "C is of SPARSEK_FP64 (4) where B is") {
					t.Errorf("%v: code %d, %s", args, code, stderr)
				}
				continue
			}
			var r report
			if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil || r.DType != dtype || r.OutDType != out ||
				r.Bias != bias || r.Activation != function || r.Check == nil || r.Check.Elements != 70*33 || r.Check.Failures != 0 {
				t.Errorf("%v: code %d, %v, %s%s", args, code, err, stdout, stderr)
			}
		}
	}
	code, stdout, stderr := invoke("verify", "--size", "64x32x64", "--out-dtype", "fp32", "--bias", "column", "--activation", "gelu")
	if code != exitOK || !strings.Contains(stdout, "bf16 (C in fp32, bias by column, gelu)") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

// A bias from a file, and C of another type in a file, compared with what they should be.
func TestBiasFromAFile(t *testing.T) {
	needLibrary(t)
	folder := files(t)
	a := readDense(t, filepath.Join(folder, "stencil.mtx.expect.npy"))
	const n = 3
	b := writeB(t, filepath.Join(folder, "b.npy"), a.Cols, n)
	row := writeB(t, filepath.Join(folder, "row.npy"), a.Rows, 1)
	column := writeB(t, filepath.Join(folder, "column.npy"), 1, n)
	for kind, at := range map[string]func(i, j int) float64{
		"row":    func(i, _ int) float64 { return float64(row.Data[i]) },
		"column": func(_, j int) float64 { return float64(column.Data[j]) },
	} {
		out := filepath.Join(folder, "c.npy")
		code, stdout, stderr := invoke("run", "--matrix", filepath.Join(folder, "stencil.mtx"), "--block", "8", "--dtype", "bf16", "--out-dtype", "fp32",
			"--b", filepath.Join(folder, "b.npy"), "--bias", kind, "--bias-file", filepath.Join(folder, kind+".npy"), "--activation", "relu",
			"--out", out, "--check", "--repeats", "1")
		if code != exitOK || !strings.Contains(stdout, "C in fp32, bias by "+kind+", relu") {
			t.Fatalf("%s: code %d: %s%s", kind, code, stdout, stderr)
		}
		got := readDense(t, out)
		for i := range a.Rows {
			for j := range n {
				want := at(i, j)
				for k := range a.Cols {
					want += a.Data[i*a.Cols+k] * float64(b.Data[k*n+j])
				}
				if want = max(want, 0); got.Data[i*n+j] != want { // whole numbers, exactly
					t.Fatalf("%s: (%d, %d) = %v, want %v", kind, i, j, got.Data[i*n+j], want)
				}
			}
		}
	}

	large := matio.Dense[float32]{Rows: 1, Cols: n, Data: []float32{1, 70000, -1e6}}
	file, err := matio.CreateDense(filepath.Join(folder, "large.npy"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := matio.WriteDense(file, large, workload.Float32.Encoding); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--bias-file column.npy", exitOK, "bias by column"},
		{"--bias-file row.npy", exitOK, "bias by row"},
		{"--bias-file b.npy", exitBadSizes, "values are needed for its rows"},
		{"--bias column --bias-file none.npy", exitBadFile, "none.npy"},
		{"--bias row --bias-file column.npy", exitBadSizes, "the bias is 1 x 3, and "},
		{"--bias column --bias-file b.npy", exitBadSizes, "3 values are needed, one for each column of C"},
		{"--bias column --bias-file large.npy --out-dtype fp16", exitOverflow, "2 values of the bias are too large for fp16"},
		{"--bias column --bias-file large.npy --out-dtype fp16 --allow-overflow", exitOK, "2 values of the bias became infinite"},
	} {
		args := strings.Fields(strings.ReplaceAll(c.args, "-file ", "-file "+folder+"/"))
		code, stdout, stderr := invoke(append([]string{"run", "--matrix", filepath.Join(folder, "stencil.mtx"), "--n", "3", "--repeats", "1"}, args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: code %d, %s%s, want %d, %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}

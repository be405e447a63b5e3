// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// A in a type narrower than that of B and C.
func TestRunMixed(t *testing.T) {
	needLibrary(t)
	matrix := filepath.Join("..", "..", "wrapper", "matio", "testdata", "scipy", "elasticity_bsr.npz")
	for _, types := range [][2]string{{"fp64", "fp32"}, {"fp64", "bf16"}, {"fp64", "fp16"}, {"fp32", "bf16"}, {"fp32", "fp16"}} {
		code, stdout, stderr := invoke("run", "--device", "cpu", "--matrix", matrix, "--n", "5", "--dtype", types[0], "--a-dtype", types[1], "--check", "--json", "--allow-overflow")
		if code != exitOK {
			t.Errorf("A of %s, B of %s: code %d: %s", types[1], types[0], code, stderr)
			continue
		}
		var r report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		if r.DType != types[0] || r.ADType != types[1] || r.OutDType != types[0] || r.Check == nil || r.Check.Failures != 0 {
			t.Errorf("A of %s, B of %s: %s", types[1], types[0], stdout)
		}
	}
	code, stdout, stderr := invoke("run", "--device", "cpu", "--pattern", "random", "--size", "64x3x64", "--block", "8", "--dtype", "fp64", "--a-dtype", "fp64", "--repeats", "1")
	if code != exitOK || !strings.Contains(stdout, "64 x 64, fp64") {
		t.Errorf("the same type twice: code %d: %s%s", code, stdout, stderr)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"run --pattern random --size 64x3x64 --block 8 --dtype fp32 --a-dtype fp64", exitUsage, "--a-dtype fp64 is not narrower than --dtype fp32"},
		{"run --pattern random --size 64x3x64 --block 8 --dtype bf16 --a-dtype fp16", exitUsage, "is not narrower"},
		{"run --pattern random --size 64x3x64 --block 8 --a-dtype fp8", exitUsage, "want one of"},
		{"tune --grid --a-dtype bf16", exitUsage, "--a-dtype does not go with --grid"},
		{"tune --typical --op dds", exitUsage, "--op does not go with --grid or --typical"},
		{"tune --grid --column-major b", exitUsage, "--column-major does not go with --grid"},
	} {
		if code, _, stderr := invoke(strings.Fields(c.args + " --device cpu")...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, %s", c.args, code, stderr)
		}
	}
}

// Values of A that its own type makes infinite are counted.
func TestRunMixedOverflow(t *testing.T) {
	needLibrary(t)
	matrix := write(t, filepath.Join(t.TempDir(), "a.mtx"), "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 70000\n1 2 1\n2 2 -1e6\n")
	args := []string{"run", "--device", "cpu", "--matrix", matrix, "--block", "1", "--n", "1", "--dtype", "fp64", "--a-dtype", "fp16"}
	if code, _, stderr := invoke(args...); code != exitOverflow || !strings.Contains(stderr, "2 values of A are too large for fp16") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if code, stdout, stderr := invoke(append(args, "--allow-overflow", "--check")...); code != exitOK || !strings.Contains(stdout, "2 values of A") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

// What is measured of products of two types is stored for them alone.
func TestTuneMixed(t *testing.T) {
	needLibrary(t)
	t.Setenv("SPARSEK_TUNING_CACHE", filepath.Join(t.TempDir(), "tuning.txt"))
	product := []string{"--device", "cpu", "--size", "256x4x256", "--block", "4", "--density", "0.2", "--pattern", "random", "--dtype", "fp64"}
	if code, _, stderr := invoke(append([]string{"tune", "--a-dtype", "fp32", "--budget", "20ms"}, product...)...); code != exitOK {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for _, c := range []struct{ aType, reason string }{{"fp32", "was measured"}, {"fp16", "the cost model"}, {"fp64", "the cost model"}} {
		code, stdout, stderr := invoke(append([]string{"run", "--a-dtype", c.aType, "--repeats", "1"}, product...)...)
		if code != exitOK || !strings.Contains(stdout, c.reason) {
			t.Errorf("A of %s: code %d: %s%s", c.aType, code, stdout, stderr)
		}
	}
	if code, stdout, stderr := invoke("cache", "list"); code != exitOK || !strings.Contains(stdout, "fp32*fp64") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

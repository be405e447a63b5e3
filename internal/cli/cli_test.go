// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/build/provenance"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/matio"
	"github.com/sparsek/sparsek/wrapper/matio/testdata"
)

func needLibrary(t *testing.T) *sparsek.Library {
	t.Helper()
	lib, err := sparsek.Default()
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// files lays the test matrices out.
func files(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	tree, err := fs.Sub(testdata.SciPy, "scipy")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, tree); err != nil {
		t.Fatal(err)
	}
	return folder
}

func readDense(t *testing.T, path string) matio.Dense[float64] {
	t.Helper()
	d, err := matio.ReadDense(path, func(x float64) float64 { return x })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeB writes a K x N matrix of small whole numbers, which every type holds.
func writeB(t *testing.T, path string, k, n int) matio.Dense[float32] {
	t.Helper()
	b := matio.Dense[float32]{Rows: k, Cols: n, Data: make([]float32, k*n)}
	for i := range b.Data {
		b.Data[i] = float32(i*7%11 - 5)
	}
	out, err := matio.CreateDense(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := matio.WriteDense(out, b, workload.Float32.Encoding); err != nil {
		t.Fatal(err)
	}
	return b
}

// deviceFor is one that serves the type.
func deviceFor(dtype string) string {
	if dtype == "fp64" {
		return "cpu"
	}
	return "auto"
}

// From files written by SciPy to a file of C, compared with a product of the dense matrices.
func TestRunOnFiles(t *testing.T) {
	needLibrary(t)
	folder := files(t)
	const n = 5
	for _, c := range []struct {
		matrix, block, dtype string
		tolerance            float64 // of |C|max
	}{
		{"elasticity_bsr.npz", "3x3", "fp32", 1e-6}, {"elasticity_bsr.npz", "16x32", "fp16", 2e-3}, {"elasticity_bsr.npz", "64", "bf16", 1e-2},
		{"stencil.mtx", "8", "bf16", 0}, {"stencil.mtx.gz", "64x64", "fp16", 0}, {"skew_real.mtx", "2x3", "fp32", 1e-6},
		{"array_integer.mtx", "1", "fp32", 0}, {"elasticity_bsr.npz", "3x3", "fp64", 1e-15}, {"skew_real.mtx", "4", "fp64", 1e-15}, {"duplicates_bool.npz", "4", "bf16", 0}, {"csr.npz", "5", "fp32", 1e-6},
	} {
		t.Run(c.matrix+" "+c.dtype, func(t *testing.T) {
			a := readDense(t, filepath.Join(folder, c.matrix+".expect.npy"))
			bPath, cPath := filepath.Join(t.TempDir(), "b.npy"), filepath.Join(t.TempDir(), "c.npy")
			b := writeB(t, bPath, a.Cols, n)
			code, stdout, stderr := invoke("run", "--matrix", filepath.Join(folder, c.matrix), "--block", c.block, "--dtype", c.dtype,
				"--b", bPath, "--out", cPath, "--alpha=2", "--check", "--repeats", "1", "--device", deviceFor(c.dtype))
			if code != exitOK {
				t.Fatalf("code %d: %s", code, stderr)
			}
			for _, want := range []string{"fill-in", "effective TFLOP/s", "dense-equivalent TFLOP/s", "within their bounds", "written"} {
				if !strings.Contains(stdout, want) {
					t.Errorf("%q is missing:\n%s", want, stdout)
				}
			}
			got := readDense(t, cPath)
			if got.Rows != a.Rows || got.Cols != n {
				t.Fatalf("C is %d x %d", got.Rows, got.Cols)
			}
			want := make([]float64, a.Rows*n)
			largest := 0.0
			for i := range a.Rows {
				for j := range n {
					for k := range a.Cols {
						want[i*n+j] += 2 * a.Data[i*a.Cols+k] * float64(b.Data[k*n+j])
					}
					largest = max(largest, math.Abs(want[i*n+j]))
				}
			}
			for i, w := range want {
				if math.Abs(got.Data[i]-w) > c.tolerance*largest {
					t.Fatalf("(%d, %d) = %v, want %v", i/n, i%n, got.Data[i], w)
				}
			}
		})
	}
}

func TestRunJSON(t *testing.T) {
	needLibrary(t)
	for _, pattern := range []string{"random", "window", "causal", "stencil"} {
		code, stdout, stderr := invoke("run", "--pattern", pattern, "--size", "100x33x130", "--block", "16x32", "--seed", "9", "--dtype", "fp32", "--json", "--check", "--repeats", "1")
		if code != exitOK {
			t.Fatalf("%s: code %d: %s", pattern, code, stderr)
		}
		var r report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		if r.Pattern != pattern || r.M != 100 || r.N != 33 || r.K != 130 || r.BlockM != 16 || r.BlockK != 32 || r.Seed != 9 || r.DType != "fp32" ||
			r.Blocks == 0 || r.Kernel == "" || r.BackendReason == "" || r.Check == nil || r.Check.Elements != 3300 || r.Check.Failures != 0 {
			t.Errorf("%s", stdout)
		}
	}
}

func TestRunFaults(t *testing.T) {
	needLibrary(t)
	folder := files(t)
	large := write(t, filepath.Join(folder, "large.mtx"), "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 70000\n2 2 -1e6\n")
	endless := write(t, filepath.Join(folder, "endless.mtx"), "%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 0\n")
	b := filepath.Join(folder, "b.npy")
	writeB(t, b, 7, 2)
	out := filepath.Join(folder, "out.npy")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--matrix " + filepath.Join(folder, "none.mtx"), exitBadFile, "none.mtx"},
		{"--matrix " + filepath.Join(folder, "refused_complex.npz"), exitBadFile, "complex"},
		{"--matrix " + filepath.Join(folder, "csr.npz") + " --b " + filepath.Join(folder, "refused_cube.npy"), exitBadFile, "3 dimensions"},
		{"--matrix " + filepath.Join(folder, "csr.npz") + " --b " + b, exitBadSizes, "B is 7 x 2, and 11 x 2 is needed"},
		{"--matrix " + filepath.Join(folder, "csr.npz") + " --size 13x4x12", exitBadSizes, "the matrix is 13 x 11"},
		{"--pattern random --size 8x3x7 --b " + b, exitBadSizes, "7 x 3 is needed"},
		{"--matrix " + large + " --dtype fp16 --out " + out, exitOverflow, "2 values of A and 0 of B"},
		{"--matrix " + endless + " --block 1", exitNoMemory, "of memory"},
		{"--matrix " + large + " --out " + filepath.Join(folder, "no", "out.npy"), exitBadOutput, "there is no folder " + filepath.Join(folder, "no") + ": make it first"},
		{"--matrix " + large + " --threads 99999", exitUsage, "--threads 99999"},
		{"--matrix " + large + " --kernel spiral", exitUnsupported, "spiral"},
	} {
		code, _, stderr := invoke(append([]string{"run"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, %q, want %d, %q", c.args, code, stderr, c.code, c.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*out.npy*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	code, stdout, stderr := invoke("run", "--matrix", large, "--dtype", "fp16", "--allow-overflow")
	if code != exitOK || !strings.Contains(stdout, "2 values of A and 0 of B became infinite") {
		t.Errorf("code %d, %s, %s", code, stdout, stderr)
	}
}

func TestVerify(t *testing.T) {
	needLibrary(t)
	for _, dtype := range dtypes {
		code, stdout, stderr := invoke("verify", "--size", "192x64x256", "--dtype", dtype)
		if code != exitOK {
			t.Fatalf("%s: code %d: %s", dtype, code, stderr)
		}
		for _, want := range []string{"random", "window", "causal", "192x64x256", "all 12288 elements", "within its error bound"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q is missing:\n%s", want, stdout)
			}
		}
	}
	code, stdout, stderr := invoke("verify", "--size", "64x64x64", "--device", "cpu", "--json")
	var result verifyResult
	if err := json.Unmarshal([]byte(stdout), &result); code != exitOK || err != nil || !result.Passed || len(result.Cases) != 3 {
		t.Errorf("code %d, %v, %s, %s", code, err, stdout, stderr)
	}
}

// A result with a wrong element must be reported with its place, and end the program with code 1.
func TestWrongResultIsReported(t *testing.T) {
	lib := needLibrary(t)
	engine, err := lib.NewEngine(sparsek.EngineOptions{Backend: sparsek.CPU})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	p, err := generate(patternSpec{"random", sizeFlag{30, 20, 40}, blockFlag{4, 8}, 0.5, 1, 4, sparsek.DSD}, workload.Float32, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := workload.Epilogue[float32]{}
	s, err := workload.Solve(context.Background(), engine, p, plain, workload.Options{Repeats: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.C.Data[17*20+3] = 1000
	r := newReport(p, plain, s, workload.Float32, engine.Info())
	err = checkSolution(r, engine, p, plain, s)
	if exitCode(err) != exitWrongResult || !strings.Contains(err.Error(), "1 of 600 elements") ||
		!strings.Contains(err.Error(), "the first at row 17, column 3; the worst at row 17, column 3: got 1000, want ") {
		t.Error(err)
	}
	var out bytes.Buffer
	if err := printRun(&environment{stdout: &out}, r, engine.Info()); err != nil || !strings.Contains(out.String(), "1 of 600 elements are WRONG") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestVerifyByName(t *testing.T) {
	needLibrary(t)
	code, stdout, stderr := invoke("verify", "--size", "64x64x64", "--device", "cpu", "--kernel", "cpu_generic")
	if code != exitOK || strings.Count(stdout, "cpu_generic") != len(verifyPatterns) {
		t.Errorf("code %d: %s, %s", code, stdout, stderr)
	}
	code, _, stderr = invoke("verify", "--size", "64x64x64", "--device", "cpu", "--kernel", "spiral")
	if code != exitUnsupported || !strings.Contains(stderr, "spiral") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

func TestInfoAndVersion(t *testing.T) {
	needLibrary(t)
	code, stdout, stderr := invoke("info")
	if code != exitOK || !strings.Contains(stdout, "kernel") || !strings.Contains(stdout, "library") ||
		!strings.Contains(stdout, "never chosen, runs by name: ") {
		t.Errorf("code %d: %s, %s", code, stdout, stderr)
	}
	code, stdout, stderr = invoke("info", "--json")
	var r infoResult
	if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil || len(r.Kernels) == 0 || r.Version == "" || r.Default.Reason == "" {
		t.Errorf("code %d, %v: %s, %s", code, err, stdout, stderr)
	}
	code, stdout, stderr = invoke("info", "--provenance")
	if code == exitNoLibrary && strings.Contains(stderr, provenance.ErrNone.Error()) {
		t.Log("a library made for tests alone: no provenance")
	} else {
		var s provenance.Statement
		err := json.Unmarshal([]byte(stdout), &s)
		if code != exitOK || err != nil || s.Predicate.BuildDefinition.ExternalParameters.Commit != r.Commit {
			t.Errorf("code %d, %v: %s, %s", code, err, stdout, stderr)
		}
	}
	code, stdout, stderr = invoke("version")
	if code != exitOK || !strings.HasPrefix(stdout, "sparsek "+r.Version) {
		t.Errorf("code %d: %s, %s", code, stdout, stderr)
	}
}

// What belongs to another library is listed as such, and the CPU has none of it.
func TestKernelsOfLibraries(t *testing.T) {
	needLibrary(t)
	_, stdout, _ := invoke("info")
	for _, want := range []string{"cublas_dense", "by cuBLAS", "by cuSPARSE", "bf16, fp16", "chosen only with --allow-dense: ", "chosen only where it was measured to be the fastest: "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("info does not speak of %q:\n%s", want, stdout)
		}
	}
	_, stdout, _ = invoke("info", "--json")
	var r infoResult
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	libraries := make(map[string]string)
	for _, k := range r.Kernels {
		if libraries[k.Name] = k.Library; k.ReadsAbsent && k.Library == "" {
			t.Errorf("%s reads absent blocks", k.Name)
		}
	}
	if libraries["cublas_dense"] != "cuBLAS" || libraries["cusparse_bsr"] != "cuSPARSE" || libraries["cusparse_bell"] != "cuSPARSE" || libraries["cusparse_csr"] != "cuSPARSE" || libraries["cpu_generic"] != "" {
		t.Errorf("libraries: %v", libraries)
	}
	code, _, stderr := invoke("run", "--pattern", "random", "--size", "64x64x64", "--device", "cpu", "--kernel", "cublas_dense", "--allow-dense")
	if code != exitUnsupported || !strings.Contains(stderr, "cublas_dense") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// Only float32 can be rounded to TF32, and the CPU leaves it as it is.
func TestCompute(t *testing.T) {
	needLibrary(t)
	args := []string{"run", "--pattern", "random", "--size", "64x64x64", "--device", "cpu", "--compute", "tf32", "--check", "--repeats", "1"}
	code, stdout, stderr := invoke(append(args, "--dtype", "fp32", "--json")...)
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK || r.Compute != "tf32" || r.Check == nil || r.Check.Failures != 0 {
		t.Errorf("code %d, %v: %s, %s", code, err, stdout, stderr)
	}
	if code, stdout, stderr = invoke(append(args, "--dtype", "fp32")...); code != exitOK || !strings.Contains(stdout, "may be rounded to tf32") {
		t.Errorf("code %d: %s, %s", code, stdout, stderr)
	}
	if code, _, stderr = invoke(args...); code == exitOK || !strings.Contains(stderr, "is for matrices of fp32") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if code, _, stderr = invoke("run", "--pattern", "random", "--size", "64x64x64", "--compute", "fast"); code != exitUsage || !strings.Contains(stderr, "want one of exact, tf32") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

func TestInterrupted(t *testing.T) {
	needLibrary(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "c.npy")
	for _, args := range [][]string{{"verify"}, {"bench"}, {"run", "--pattern", "random", "--size", "64x64x64", "--out", out}} {
		var stdout, stderr bytes.Buffer
		if code := Main(ctx, args, &stdout, &stderr); code != exitInterrupted || !strings.HasSuffix(stderr.String(), "sparsek: interrupted\n") {
			t.Errorf("%v: code %d, %s", args, code, stderr.String())
		}
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What cannot be written is found out first: the matrix, which is not there, is not even looked for.
func TestOutIsCheckedFirst(t *testing.T) {
	folder := t.TempDir()
	file := write(t, filepath.Join(folder, "file"), "as it was")
	for out, want := range map[string]string{
		folder:                            "this is a folder",
		filepath.Join(folder, "x", "y"):   "there is no folder " + filepath.Join(folder, "x"),
		filepath.Join(folder, "x") + "/":  "there is no folder " + filepath.Join(folder, "x"),
		filepath.Join(file, "c.npy"):      file + " is no folder",
		os.DevNull:                        "is no ordinary file",
		filepath.Join(folder, "new.npy"):  "none.mtx",
		file:                              "none.mtx",
		filepath.Join(folder, ".", "new"): "none.mtx",
	} {
		code, stdout, stderr := invoke("run", "--matrix", filepath.Join(folder, "none.mtx"), "--out", out)
		wantCode := exitBadOutput
		if want == "none.mtx" {
			needLibrary(t)
			wantCode = exitBadFile
		}
		if code != wantCode || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("--out %s: code %d, %q, want %d, %q", out, code, stderr, wantCode, want)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "as it was" {
		t.Errorf("the file that was there is %q, %v", text, err)
	}
}

func TestRunWithoutBlocksOrElements(t *testing.T) {
	needLibrary(t)
	folder := t.TempDir()
	for name, want := range map[string]string{"3 4 0": "no blocks", "0 4 0": "no blocks"} {
		matrix := write(t, filepath.Join(folder, "a.mtx"), "%%MatrixMarket matrix coordinate real general\n"+name+"\n")
		code, stdout, stderr := invoke("run", "--matrix", matrix, "--check", "--repeats", "1", "--device", "cpu")
		if code != exitOK || !strings.Contains(stdout, want) || strings.Contains(stdout, "for each") || strings.Contains(stdout, "-1") {
			t.Errorf("%s: code %d, %s%s", name, code, stdout, stderr)
		}
	}
}

// Without --block a file keeps its own blocks; auto takes those with little fill-in; info --matrix shows them all.
func TestBlocksOfAFile(t *testing.T) {
	needLibrary(t)
	matrix := filepath.Join(files(t), "elasticity_bsr.npz")
	run := func(args ...string) (r report) {
		t.Helper()
		code, stdout, stderr := invoke(append([]string{"run", "--matrix", matrix, "--dtype", "fp32", "--n", "4", "--repeats", "1", "--check", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(stdout), &r); code != exitOK || err != nil {
			t.Fatalf("%v: code %d, %v, %s", args, code, err, stderr)
		}
		return r
	}
	if r := run(); r.BlockM != 3 || r.BlockK != 3 {
		t.Errorf("blocks of %d x %d, not the file's 3 x 3", r.BlockM, r.BlockK)
	}
	if r := run("--block", "16x32"); r.BlockM != 16 || r.BlockK != 32 {
		t.Errorf("blocks of %d x %d", r.BlockM, r.BlockK)
	}
	code, stdout, _ := invoke("info", "--matrix", matrix, "--json")
	var info matrixInfo
	if err := json.Unmarshal([]byte(stdout), &info); code != exitOK || err != nil || len(info.Blocks) < 8 || info.Elements == 0 {
		t.Fatalf("code %d, %v, %s", code, err, stdout)
	}
	own, best := 0, 0
	for _, f := range info.Blocks {
		if f.Own {
			own = f.BlockM
		}
		if f.Best {
			best = f.BlockM
		}
	}
	if r := run("--block", "auto"); own != 3 || r.BlockM != best || best == 0 {
		t.Errorf("auto is %d, the best %d, the file's %d", r.BlockM, best, own)
	}
	wantRun(t, "run --repeats 1 --n 4 --block 64 --matrix "+matrix, exitOK, "--block auto, or see sparsek info --matrix")
	wantRun(t, "info --matrix "+matrix, exitOK, "fill-in", "3x3", "the file's own", "--block auto")
	wantRun(t, "info --matrix none.mtx", exitBadFile, "none.mtx")
	wantRun(t, "run --pattern random --size 8x8x8 --block auto", exitUsage, "a pattern is made of blocks")
}

// NaN in a file is multiplied, and reported.
func TestRunReportsNaN(t *testing.T) {
	needLibrary(t)
	matrix := write(t, filepath.Join(t.TempDir(), "a.mtx"), "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 nan\n2 2 1\n")
	wantRun(t, "run --repeats 1 --n 4 --block 2 --check --matrix "+matrix, exitOK, "1 values of A or B are infinite or NaN")
}

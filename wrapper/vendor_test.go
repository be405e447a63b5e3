// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// libraryKernels are those of other libraries, with a name that starts so: "" for all.
func libraryKernels(t *testing.T, lib *Library, prefix string) []Kernel {
	return slices.DeleteFunc(must(lib.Kernels())(t), func(k Kernel) bool {
		return k.Library == "" || !strings.HasPrefix(k.Name, prefix)
	})
}

func TestLibraryKernelsAreListed(t *testing.T) {
	all := must(library(t).Kernels())(t)
	for name, want := range map[string]Kernel{
		"cublas_dense":  {Library: "cuBLAS", ReadsAbsent: true},
		"cusparse_bsr":  {Library: "cuSPARSE"},
		"cusparse_bell": {Library: "cuSPARSE", ReadsAbsent: true},
		"cusparse_csr":  {Library: "cuSPARSE", ReadsAbsent: true},
		byVector:        {Library: "cuSPARSE"},
	} {
		at := slices.IndexFunc(all, func(k Kernel) bool { return k.Name == name })
		if at < 0 {
			t.Errorf("%s is not listed", name)
			continue
		}
		got := all[at]
		if got.Library != want.Library || got.ReadsAbsent != want.ReadsAbsent || !got.Baseline || got.Backend != CUDA || got.DType != 0 {
			t.Errorf("%s is listed as %+v", name, got)
		}
		if slices.ContainsFunc(all[at:], func(k Kernel) bool { return k.Library == "" && k.Backend == CUDA }) {
			t.Errorf("%s comes before one of our own", name)
		}
	}
	for _, k := range all {
		if k.Library == "" && k.ReadsAbsent {
			t.Errorf("%s reads absent blocks", k.Name)
		}
	}
}

// The CPU back-end has none of them, whatever is allowed.
func TestLibraryKernelsOnCPU(t *testing.T) {
	engine := newEngine(t, CPU)
	m := must(NewMatrix(context.Background(), engine, small()))(t)
	for _, kernel := range libraryKernels(t, engine.Library(), "") {
		_, err := m.Plan(context.Background(), PlanOptions{N: 8, Kernel: kernel.Name, AllowDense: true})
		wantFault(t, err, ErrNoSuchKernel, kernel.Name)
	}
}

// onLibraryKernels runs a test on each kernel of another library, or skips it where the library is not there.
func onLibraryKernels(t *testing.T, test func(t *testing.T, engine *Engine, kernel Kernel)) {
	engine := newEngine(t, CUDA)
	for _, kernel := range libraryKernels(t, engine.Library(), "") {
		t.Run(kernel.Name, func(t *testing.T) {
			p := libraryProduct[BFloat16, BFloat16](kernel, shape{rows: 64, cols: 64, n: columnsFor(kernel, 64), blockM: 64, blockK: 64, density: 1, alpha: 1})
			m := must(NewMatrix(context.Background(), engine, p.a))(t)
			defer m.Close()
			plan, err := m.Plan(context.Background(), p.planOptions(16))
			if errors.Is(err, ErrNoLibrary) {
				t.Skipf("skipped: %v", err)
			}
			must(plan, err)(t).Close()
			test(t, engine, kernel)
		})
	}
}

// byVector is the kernel for one column alone.
const byVector = "cusparse_csr_vector"

// columnsFor is n, or 1 where the kernel takes no more.
func columnsFor(kernel Kernel, n int) int {
	if kernel.Name == byVector {
		return 1
	}
	return n
}

// libraryProduct has at least one block.
func libraryProduct[T, C Element](kernel Kernel, s shape) *product[T, C, int32] {
	s.kernel = kernel.Name
	p := newProductTo[T, C, int32](s)
	p.allowDense = true
	if len(p.a.ColIdx) == 0 {
		rows := make([][]int32, (s.rows+s.blockM-1)/s.blockM)
		rows[len(rows)-1] = []int32{0}
		p.setPattern(rows, func() T { return FromFloat32[T](0.75) })
	}
	return p
}

// pads returns whether Blocked-ELL would hold more than four blocks for each that is stored.
func pads[T, C Element](p *product[T, C, int32]) bool {
	longest := int32(0)
	for i := 1; i < len(p.a.RowPtr); i++ {
		longest = max(longest, p.a.RowPtr[i]-p.a.RowPtr[i-1])
	}
	return int(longest)*(len(p.a.RowPtr)-1) > 4*len(p.a.ColIdx)
}

func drawLibraryShape(t *rapid.T, kernel Kernel) shape {
	block := rapid.SampledFrom([]int{8, 16, 32, 64, 128}).Draw(t, "block")
	s := shape{blockM: block, blockK: block}
	s.rows = block * rapid.IntRange(1, 6).Draw(t, "block rows")
	s.cols = block * rapid.IntRange(1, 6).Draw(t, "block columns")
	if kernel.Name == "cublas_dense" { // any block, anywhere
		s.blockK = rapid.SampledFrom([]int{block, 2 * block, 3, 12}).Draw(t, "block width")
		s.rows -= rapid.IntRange(0, block-1).Draw(t, "rows short of whole blocks")
		s.cols -= rapid.IntRange(0, block-1).Draw(t, "columns short of whole blocks")
	}
	if strings.HasPrefix(kernel.Name, "cusparse_csr") { // any block, on the border of the matrix
		s.blockM, s.blockK = rapid.IntRange(1, 9).Draw(t, "height"), rapid.SampledFrom([]int{1, 2, 3, 5, 8, 16}).Draw(t, "width")
		if rapid.Bool().Draw(t, "elements") {
			s.blockM, s.blockK = 1, 1
		}
		s.rows, s.cols = s.blockM*rapid.IntRange(1, 40).Draw(t, "block rows"), s.blockK*rapid.IntRange(1, 40).Draw(t, "block columns")
	}
	const mostProducts = 20 << 20 // for the plain loop that checks them
	s.n = min(rapid.OneOf(rapid.IntRange(1, 200), rapid.SampledFrom([]int{1, 8, 64, 256})).Draw(t, "n"), mostProducts/(s.rows*s.cols))
	align := (s.n+7)/8*8 - s.n // for cuSPARSE
	gap := rapid.SampledFrom([]int{0, 8})
	s.gapB, s.gapC = align+gap.Draw(t, "gap of B"), align+gap.Draw(t, "gap of C")
	if kernel.Name == byVector {
		s.n, s.gapB, s.gapC = 1, 0, 0
	}
	s.density = rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "density")
	scalar := rapid.SampledFrom([]float32{0, 1, -0.5, 2.25})
	s.alpha, s.beta = scalar.Draw(t, "alpha"), scalar.Draw(t, "beta")
	s.seed = rapid.Uint64().Draw(t, "seed")
	return s
}

// refusal is what the library itself has against a product, if anything: what it serves is not the same in all versions.
func refusal[T, C Element](t *rapid.T, engine *Engine, p *product[T, C, int32]) error {
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	plan, err := m.Plan(context.Background(), p.planOptions(16))
	if p.kernel == "cusparse_bell" && (pads(p) || p.n%8 != 0) {
		if !errors.Is(err, ErrNoSuchKernel) || !strings.Contains(err.Error(), "padded") && !strings.Contains(err.Error(), "multiples of 8") {
			t.Fatalf("error is %v", err)
		}
		return err
	}
	if errors.Is(err, ErrNoSuchKernel) && strings.Contains(err.Error(), "cuSPARSE's status") {
		return err
	}
	must(plan, err)(t).Close()
	return nil
}

func testLibraryProduct[T, C Element](t *rapid.T, engine *Engine, kernel Kernel, s shape) error {
	if kernel.Name == "cublas_dense" && DTypeOf[C]() != FP32 {
		s.beta = 0 // with another, alpha A B may be rounded to C's type before beta C is added, once more than ours
	}
	p := libraryProduct[T, C](kernel, s)
	if err := refusal(t, engine, p); err != nil {
		return err
	}
	if s.beta == 0 { // C must not be read
		for i := range p.c0.Rows {
			for j := range p.n {
				p.c0.Data[i*p.c0.Stride+j] = FromFloat32[C](float32(math.NaN()))
			}
		}
	}
	if !kernel.ReadsAbsent && rapid.Bool().Draw(t, "NaN and Inf where no block reads") {
		p.poison()
	}
	c, info := p.run(t, engine, rapid.Bool().Draw(t, "in device memory"))
	if info.Kernel != kernel.Name {
		t.Fatalf("kernel %s ran", info.Kernel)
	}
	p.verify(t, engine, info, c)
	return nil
}

// Each of them gives what the check needs, in every type that it writes.
func TestLibraryKernels(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		for name, test := range map[string]func(*rapid.T, *Engine, Kernel, shape) error{
			"bf16": testLibraryProduct[BFloat16, BFloat16], "bf16 to fp32": testLibraryProduct[BFloat16, float32],
			"fp16": testLibraryProduct[Float16, Float16], "fp16 to fp32": testLibraryProduct[Float16, float32],
			"fp32": testLibraryProduct[float32, float32], "fp64": testLibraryProduct[float64, float64],
		} {
			if !strings.HasPrefix(name, "bf16") && !strings.HasPrefix(name, "fp16") && kernel.Name == "cusparse_bell" {
				continue // it takes 16 bits
			}
			t.Run(name, func(t *testing.T) {
				served, refused := 0, map[string]int{}
				rapid.Check(t, func(rt *rapid.T) {
					if err := test(rt, engine, kernel, drawLibraryShape(rt, kernel)); err != nil {
						refused[err.Error()]++
					} else {
						served++
					}
				})
				t.Logf("%d products, refused: %v", served, refused)
				if served == 0 {
					t.Skip("skipped: this library does not serve it")
				}
			})
		}
	})
}

// What a library does not serve is refused when the plan is made, with the reason.
func TestLibraryKernelFaults(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, kernel := range libraryKernels(t, engine.Library(), "") {
		t.Run(kernel.Name, func(t *testing.T) {
			p := usual(kernel)
			m := must(NewMatrix(context.Background(), engine, p.a))(t)
			defer m.Close()
			refused := func(m *Matrix, speaksOf string, change func(*PlanOptions)) {
				t.Helper()
				options := p.planOptions(16)
				change(&options)
				_, err := m.Plan(context.Background(), options)
				wantFault(t, err, ErrNoSuchKernel, speaksOf)
			}
			refused(m, "neither a bias", func(o *PlanOptions) { o.Bias = RowBias })
			refused(m, "neither a bias", func(o *PlanOptions) { o.Activation = ReLU })
			refused(m, "in the type of A", func(o *PlanOptions) { o.Output = FP16 })
			if kernel.ReadsAbsent {
				refused(m, "allow_dense", func(o *PlanOptions) { o.AllowDense = false })
			}
			if kernel.Library == "cuSPARSE" {
				speaksOf := "16 bytes"
				if kernel.Name == byVector {
					speaksOf = "by vectors"
				}
				refused(m, speaksOf, func(o *PlanOptions) { o.LDB = p.n + 4 })
			}
			if kernel.Library == "cuSPARSE" && !strings.HasPrefix(kernel.Name, "cusparse_csr") {
				oblong := must(NewMatrix(context.Background(), engine, libraryProduct[BFloat16, BFloat16](kernel,
					shape{rows: 64, cols: 64, n: 8, blockM: 32, blockK: 16, density: 1}).a))(t)
				defer oblong.Close()
				refused(oblong, "square", func(*PlanOptions) {})
			}
		})
	}
}

const absentEnv = "SPARSEK_TEST_ABSENT"

// A missing library is reported by an error of its own. The result of opening one is final for a process, so another
// process is asked.
func TestLibraryKernelsWithoutLibraries(t *testing.T) {
	engine := newEngine(t, CUDA)
	if os.Getenv(absentEnv) == "" {
		self := exec.Command(must(os.Executable())(t), "-test.run=^"+t.Name()+"$", "-test.v")
		self.Env = append(os.Environ(), absentEnv+"=1", "SPARSEK_CUBLAS=/nowhere/cublas", "SPARSEK_CUSPARSE=/nowhere/cusparse",
			LibraryEnv+"="+engine.Library().Path())
		out, err := self.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, kernel := range libraryKernels(t, engine.Library(), "") {
		p := usual(kernel)
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		_, err := m.Plan(context.Background(), p.planOptions(16))
		wantFault(t, err, ErrNoLibrary, "/nowhere/"+strings.ToLower(kernel.Library))
		m.Close()
	}
}

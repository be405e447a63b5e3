// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/bench/blas"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// onEach runs a test in each back-end that is there.
func onEach(t *testing.T, test func(t *testing.T, engine *sparsek.Engine)) {
	lib, err := sparsek.Default()
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []sparsek.Backend{sparsek.CPU, sparsek.CUDA} {
		t.Run(backend.String(), func(t *testing.T) {
			engine, err := lib.NewEngine(sparsek.EngineOptions{Backend: backend, Threads: 2})
			if errors.Is(err, sparsek.ErrNoDevice) {
				t.Skip("skipped: no GPU")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			test(t, engine)
		})
	}
}

// A tiny suite from end to end, of all element types and with all peers: each is in every result, or said to be missing.
func TestRun(t *testing.T) {
	onEach(t, func(t *testing.T, engine *sparsek.Engine) {
		shape := workload.Shape{M: 96, N: 32, K: 128}
		var cases []Case
		for _, dtype := range []string{"bf16", "fp16", "fp32"} {
			for _, density := range []float64{0.25, 1} {
				one := random(dtype, shape, 32, 32, density, dtype)
				one.Graph = true
				cases = append(cases, one)
			}
		}
		cases = append(cases, Case{Name: "file", Shape: workload.Shape{M: 5, N: 8, K: 6}, BlockM: 2, BlockK: 3, DType: "fp32", File: &File{"x/a.mtx",
			&bsr.Entries{Rows: 5, Cols: 6, Row: []int32{0, 4}, Col: []int32{5, 0}, Value: []float64{2, -3}}}})
		r, err := NewRunner(engine, cases, Options{Rounds: 3, Repeats: 2, Against: []string{CUBLAS, CUSPARSE, OpenBLAS}, Sustained: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		report := &Report{}
		steps := 0
		report.Run(context.Background(), cases, r.Measure, func() { steps++ })
		if len(report.Failed) > 0 || len(report.Cases) != len(cases) || steps != len(cases) || report.Interrupted {
			t.Fatalf("%+v, %d steps", report.Failed, steps)
		}
		_, err = blas.Open(2)
		hasBLAS := err == nil
		for i, one := range report.Cases {
			ours := one.Timed[0]
			if ours.Name != Ours || ours.Runs != 6 || len(ours.Rounds) != 3 || len(ours.Rounds[0]) != 2 || !(ours.Seconds > 0) || ours.SpeedUp != nil || one.Kernel == "" {
				t.Errorf("%s: %+v", one.Name, ours)
			}
			if ratio := ours.DenseEquivalent / ours.Effective; one.Matrix == "" && math.Abs(ratio*one.Density-1) > 1e-9 {
				t.Errorf("%s: the rates are as %v, at a density of %v", one.Name, ratio, one.Density)
			}
			onGPU := engine.Info().Backend == sparsek.CUDA
			if (one.Find(OursGraph) != nil) != (onGPU && cases[i].Graph) {
				t.Errorf("%s: in a graph: %+v", one.Name, one.Find(OursGraph))
			}
			if dense := one.Find(OpenBLAS); (dense != nil) != (hasBLAS && !onGPU && one.DType == "fp32") {
				t.Errorf("%s: OpenBLAS %+v", one.Name, dense)
			} else if dense != nil && (!dense.Dense || dense.SpeedUp == nil || math.Abs(dense.SpeedUp.Ratio*ours.Seconds/dense.Seconds-1) > 1e-9) {
				t.Errorf("%s: %+v beside %+v", one.Name, dense, ours)
			}
			for _, peer := range []string{CUBLAS, OpenBLAS, "cusparse_bsr", "cusparse_bell", "cusparse_csr"} {
				missing := slices.ContainsFunc(r.Absent(), func(a Absence) bool {
					return a.Peer == peer && a.Reason != "" && a.Fix != "" && slices.Contains(a.Cases, one.Name)
				})
				if (one.Find(peer) != nil) == missing {
					t.Errorf("%s, %s: timed %v, said to be missing %v", one.Name, peer, one.Find(peer) != nil, missing)
				}
			}
			for _, timed := range one.Timed {
				// All but the peers that no one would take for the dense product run without a pause, too.
				under := timed.Name == Ours || timed.Name == OursGraph || timed.Name == CUBLAS || timed.Name == OpenBLAS
				s := timed.Sustained
				if (s != nil) != under {
					t.Errorf("%s, %s: sustained %+v", one.Name, timed.Name, s)
				} else if s != nil && (s.Products < 2 || !(s.Seconds > 0) || math.Abs(s.Took/s.Seconds/float64(s.Products)-1) > 1e-9 ||
					(s.SpeedUp > 0) != timed.Dense || math.Abs(s.Effective*s.Seconds*1e12/one.EffectiveFLOP-1) > 1e-9) {
					t.Errorf("%s, %s: %+v", one.Name, timed.Name, s)
				}
			}
			in16Bits := one.DType == "bf16" || one.DType == "fp16" // a matrix without zeros is timed in these alone
			if full := one.Find(CUBLASFull); (full != nil) != (in16Bits && one.Find(CUBLAS) != nil) || full != nil && (!full.Full || !full.Dense) {
				t.Errorf("%s: the dense product of a full matrix: %+v", one.Name, full)
			}
			if !(one.PlanSeconds > 0) || (one.DevicePlanSeconds > 0) != onGPU {
				t.Errorf("%s: plans in %v and %v s", one.Name, one.PlanSeconds, one.DevicePlanSeconds)
			}
			if (one.Bounds != nil) != (onGPU && one.DType != "fp32") || !(one.Bytes > 0) {
				t.Errorf("%s: bounds %v, %v bytes", one.Name, one.Bounds, one.Bytes)
			}
		}
		if file := report.Cases[len(cases)-1]; file.FillIn != 6 || file.Blocks != 2 || file.Matrix != "x/a.mtx" {
			t.Errorf("%+v", file)
		}
	})
}

// Ours and the dense product are timed while SMs are held, where there are any, and nothing else is.
func TestRunWithHeldSMs(t *testing.T) {
	onEach(t, func(t *testing.T, engine *sparsek.Engine) {
		one := random("held", workload.Shape{M: 256, N: 256, K: 256}, 64, 64, 0.5, "bf16")
		one.Graph, one.Held = true, []int{1, 4}
		r, err := NewRunner(engine, []Case{one}, Options{Rounds: 2, Repeats: 2, Against: []string{CUBLAS}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		result, err := r.Measure(context.Background(), one)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{Ours}
		if engine.Info().Backend == sparsek.CUDA {
			want = append(want, OursGraph)
			if result.Find(CUBLAS) != nil {
				want = append(want, CUBLAS, CUBLASFull, Ours+"_held_1", CUBLAS+"_held_1", Ours+"_held_4", CUBLAS+"_held_4")
			} else {
				want = append(want, Ours+"_held_1", Ours+"_held_4")
			}
		}
		var got []string
		for _, timed := range result.Timed {
			got = append(got, timed.Name)
			if (timed.Held > 0) != (timed.Slowdown != nil) || timed.Runs != 4 && timed.Name != CUBLASFull {
				t.Errorf("%+v", timed)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("timed were %v, want %v", got, want)
		}
	})
}

// Ours is timed with Inf and NaN in B too, and by the same kernel.
func TestRunWithNonFiniteB(t *testing.T) {
	onEach(t, func(t *testing.T, c *sparsek.Engine) {
		one := random("nonfinite", workload.Shape{M: 256, N: 520, K: 256}, 16, 16, 0.3, "bf16")
		r, err := NewRunner(c, []Case{one}, Options{Rounds: 2, Repeats: 2, Against: []string{NonFinite}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		result, err := r.Measure(context.Background(), one)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, timed := range result.Timed {
			got = append(got, timed.Name)
			if timed.Runs != 4 || !strings.HasPrefix(timed.Kernel, result.Kernel) || (timed.Name != Ours) != (timed.SpeedUp != nil) {
				t.Errorf("%+v", timed)
			}
		}
		if want := []string{Ours, "one_inf", "all_nan"}; !slices.Equal(got, want) {
			t.Errorf("timed were %v, want %v", got, want)
		}
	})
}

// Ours is timed with a pattern that is new with each step too, where the host's time is no time of a product.
func TestRunWithNewPatterns(t *testing.T) {
	onEach(t, func(t *testing.T, c *sparsek.Engine) {
		one := random("dynamic", workload.Shape{M: 256, N: 40, K: 256}, 16, 16, 0.3, "bf16")
		r, err := NewRunner(c, []Case{one}, Options{Rounds: 2, Repeats: 2, Against: []string{Dynamic}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		result, err := r.Measure(context.Background(), one)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, timed := range result.Timed {
			got = append(got, timed.Name)
			if timed.Runs != 4 || timed.Seconds <= 0 || (timed.Effective == 0) != strings.HasSuffix(timed.Name, "_host") {
				t.Errorf("%+v", timed)
			}
		}
		want := []string{Ours, "same_pattern", "same_pattern_host", "new_pattern", "new_pattern_host", "update", "update_host", "update_graph"}
		if c.Info().Backend != sparsek.CUDA {
			want = want[:1]
			if absent := r.Absent(); len(absent) != 1 || absent[0].Peer != Dynamic {
				t.Errorf("absent are %+v", absent)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("timed were %v, want %v", got, want)
		}
	})
}

// A matrix that cannot be timed is refused before anything runs.
func TestRefused(t *testing.T) {
	onEach(t, func(t *testing.T, engine *sparsek.Engine) {
		for _, one := range []struct {
			value float64
			dtype string
			want  error
		}{{math.NaN(), "fp32", ErrNotFinite}, {math.Inf(1), "fp32", ErrNotFinite}, {1e30, "fp16", ErrOverflow}} {
			of := Case{Name: "file", Shape: workload.Shape{M: 4, N: 8, K: 4}, BlockM: 2, BlockK: 2, DType: one.dtype, File: &File{"a.mtx",
				&bsr.Entries{Rows: 4, Cols: 4, Row: []int32{1}, Col: []int32{2}, Value: []float64{one.value}}}}
			r, err := NewRunner(engine, []Case{of}, Options{Rounds: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := r.Measure(context.Background(), of); !errors.Is(err, one.want) || !strings.Contains(err.Error(), "a.mtx") {
				t.Errorf("%v as %s: %v", one.value, one.dtype, err)
			}
		}
		stopped, stop := context.WithCancel(context.Background())
		stop()
		small := random("small", workload.Shape{M: 64, N: 8, K: 64}, 32, 32, 1, "fp32")
		r, err := NewRunner(engine, []Case{small}, Options{Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Measure(stopped, small); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
	})
	if _, err := NewRunner(nil, nil, Options{}); err == nil {
		t.Error("nothing to time was taken")
	}
}

func TestParsePeers(t *testing.T) {
	for text, want := range map[string][]string{"none": {}, "torch,cublas,torch": {Torch, CUBLAS}} {
		if got, err := ParsePeers(text); err != nil || !slices.Equal(got, want) || got == nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "mkl", "cublas,", "none,cublas"} {
		if got, err := ParsePeers(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Missing ones are distinguished from faults, however they are joined.
func TestMissingIn(t *testing.T) {
	broken := errors.New("broken")
	one, two := &missing{peer: "one"}, &missing{peer: "two"}
	list, rest := missingIn(errors.Join(one, errors.Join(broken, two)))
	if len(list) != 2 || list[0] != one || list[1] != two || !errors.Is(rest, broken) {
		t.Errorf("%v, %v", list, rest)
	}
	if list, rest := missingIn(nil); list != nil || rest != nil {
		t.Errorf("%v, %v", list, rest)
	}
}

// withPython puts a program in the place of python3, which runs torch's script.
func withPython(t *testing.T, script string) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "python3"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	t.Setenv("TMPDIR", t.TempDir())
}

// Torch takes its turns by its script; what it reports that it cannot do is listed, and the rest is timed.
func TestTorch(t *testing.T) {
	answers := `
echo 'a note of some library'
echo '{"version": "2.11.0", "device": "CPU"}'
while read request; do
  case "$request" in
    *'"path"'*) file=$(printf '%s' "$request" | cut -d'"' -f8); ` + `
      if grep -q '"block_m":16' "$file"; then echo '{"error": "no way"}'; else echo '{"entry": "A @ B"}'; fi ;;
    *'"repeats":1'*) echo '{"seconds": [0.5]}' ;;
    *) echo '{"seconds": [0.25, 0.25]}' ;;
  esac
done`
	for name, c := range map[string]struct {
		script, reason string
		failed         bool
	}{
		"there":       {answers, "", false},
		"no torch":    {`echo '{"error": "torch is not installed"}'`, "torch is not installed", false},
		"dies":        {`echo 'Segmentation fault' >&2; exit 139`, "Segmentation fault", false},
		"dies later":  {`echo '{"version": "2"}'; read a; echo '{"entry": "A @ B"}'; read b; echo '{"seconds": [1]}'; read c; exit 3`, "", true},
		"talks rot":   {`echo '{"torch'; sleep 60`, "cannot be read", false},
		"wrong count": {`echo '{"version": "2"}'; read a; echo '{"entry": "A @ B"}'; read b; echo '{"seconds": []}'; cat >/dev/null`, "gave 0 times", false},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, engine *sparsek.Engine) {
				withPython(t, c.script)
				small, other := random("small", workload.Shape{M: 64, N: 8, K: 64}, 32, 32, 1, "fp32"), random("other", workload.Shape{M: 64, N: 8, K: 64}, 16, 16, 1, "fp32")
				r, err := NewRunner(engine, []Case{small, other}, Options{Rounds: 2, Repeats: 2, Against: []string{Torch}})
				if err != nil {
					t.Fatal(err)
				}
				result, err := r.Measure(context.Background(), small)
				if c.failed {
					if err == nil || !strings.Contains(err.Error(), "time torch") {
						t.Errorf("%v", err)
					}
				} else if err != nil {
					t.Fatal(err)
				} else if timed := result.Find(Torch); (timed != nil) != (c.reason == "") {
					t.Errorf("%+v, absent %+v", timed, r.Absent())
				} else if timed != nil && (timed.Seconds != 0.25 || timed.Kernel != "torch 2.11.0, A @ B" || timed.SpeedUp == nil) {
					t.Errorf("%+v", timed)
				}
				if c.reason != "" && (len(r.Absent()) != 1 || !strings.Contains(r.Absent()[0].Reason, c.reason) || r.Absent()[0].Fix == "") {
					t.Errorf("absent: %+v", r.Absent())
				}
				// The next case is measured, whatever became of torch.
				if result, err = r.Measure(context.Background(), other); err != nil || result.Find(Torch) != nil {
					t.Errorf("the next case: %+v, %v", result, err)
				}
				if name == "there" && (len(r.Absent()) != 1 || r.Absent()[0].Reason != "no way" || !slices.Equal(r.Absent()[0].Cases, []string{"other"})) {
					t.Errorf("absent: %+v", r.Absent())
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			})
		})
	}
}

// Products besides A B are checked and timed like it, and peers that have only that are listed.
func TestRunForms(t *testing.T) {
	onEach(t, func(t *testing.T, engine *sparsek.Engine) {
		var cases []Case
		for _, form := range []workload.Form{
			{Op: sparsek.DSDT, OrderC: sparsek.ColumnMajor}, {Op: sparsek.DDS}, {Op: sparsek.DDST, OrderB: sparsek.ColumnMajor}, {Op: sparsek.SDD, OrderX: sparsek.ColumnMajor},
		} {
			c := random(form.Op.String(), workload.Shape{M: 192, N: 40, K: 256}, 16, 32, 0.3, "fp32")
			c.Form, c.Diagonal = form, 2
			cases = append(cases, c)
		}
		cases[1].Diagonal, cases[1].Transposed = 0, true
		r, err := NewRunner(engine, cases, Options{Rounds: 1, Repeats: 2, Against: []string{OpenBLAS}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, c := range cases {
			result, err := r.Measure(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if want := 2 * 16 * 32 * 40 * float64(result.Blocks); result.Op != c.Name || result.ColumnMajor != c.Form.ColumnMajor() || len(result.Timed) != 1 || result.EffectiveFLOP != want {
				t.Errorf("%+v, want %g operations", result, want)
			}
		}
		if absent := r.Absent(); len(absent) != 1 || absent[0].Peer != OpenBLAS || len(absent[0].Cases) != len(cases) {
			t.Errorf("absent: %+v", absent)
		}
	})
}

// Patterns along the diagonal are of the density asked for, each in its own place; a transposed one is its transpose.
func TestPatternsOfCases(t *testing.T) {
	c := random("", workload.Shape{M: 240, N: 1, K: 480}, 10, 20, 0.25, "fp32")
	whole, err := c.Generate()
	if err != nil {
		t.Fatal(err)
	}
	c.Transposed, c.Shape.M, c.Shape.K, c.BlockM, c.BlockK = true, 480, 240, 20, 10
	transposed, err := c.Generate()
	if err != nil || !slices.EqualFunc([]bsr.Pattern{transpose(transposed)}, []bsr.Pattern{whole}, func(a, b bsr.Pattern) bool {
		return slices.Equal(a.RowPtr, b.RowPtr) && slices.Equal(a.ColIdx, b.ColIdx)
	}) {
		t.Errorf("%+v is not the transpose of %+v, %v", transposed, whole, err)
	}
	c.Transposed, c.Diagonal = false, 3
	p, err := c.Generate()
	if err != nil || p.Blocks() != 3*8*2 || float64(p.Blocks()) != c.blocks() {
		t.Fatalf("%d blocks, predicted %v, %v", p.Blocks(), c.blocks(), err)
	}
	for r := range p.BlockRows {
		for _, column := range p.Row(r) {
			if int(column)/8 != r/8 {
				t.Errorf("row %d has a block in column %d", r, column)
			}
		}
	}
	if slices.Equal(p.ColIdx[:16], p.ColIdx[16:32]) {
		t.Error("all patterns are the same")
	}
}

// Where the work is stopped, torch ends with it.
func TestTorchStopped(t *testing.T) {
	onEach(t, func(t *testing.T, engine *sparsek.Engine) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		withPython(t, `touch "$TMPDIR/started"; sleep 60`)
		small := random("small", workload.Shape{M: 64, N: 8, K: 64}, 32, 32, 1, "fp32")
		r, err := NewRunner(engine, []Case{small}, Options{Rounds: 1, Against: []string{Torch}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := r.Measure(ctx, small)
			done <- err
		}()
		for started := false; !started; {
			select {
			case err := <-done:
				t.Fatalf("it ended before torch began: %v", err)
			case <-time.After(time.Millisecond):
			}
			_, err := os.Stat(filepath.Join(os.Getenv("TMPDIR"), "started"))
			started = err == nil
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A as a dense matrix has its blocks where they belong, cut off at the border, and zeros elsewhere.
func TestExpand(t *testing.T) {
	a := bsr.Matrix[float32]{Rows: 3, Cols: 5, BlockM: 2, BlockK: 2, Values: []float32{1, 2, 3, 4, 5, 0, 6, 0, 7, 8, 0, 0},
		Pattern: bsr.Pattern{BlockRows: 2, BlockCols: 3, RowPtr: []int32{0, 2, 3}, ColIdx: []int32{0, 2, 1}}}
	want := []float32{1, 2, 0, 0, 5, 3, 4, 0, 0, 6, 0, 0, 7, 8, 0}
	if got := expand(a); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What a profiler looks at: launches that were checked once and not timed.
func TestLaunch(t *testing.T) {
	onEach(t, func(t *testing.T, engine *sparsek.Engine) {
		one := cube("one", 256, 64, 64, "window", 0.4, Reach{})
		one.Shuffled = true
		r, err := NewRunner(engine, []Case{one}, Options{Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		l, err := r.Launch(context.Background(), one, 3)
		if err != nil || l.Launches != 4 || l.Plan.Kernel == "" || l.Work.FLOP <= 0 || l.Case.Name != "one" {
			t.Errorf("launched: %+v, %v", l, err)
		}
	})
}

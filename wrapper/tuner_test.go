// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

// ownCache gives the test a tuning cache of its own.
func ownCache(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tuning.txt")
	t.Setenv("SPARSEK_TUNING_CACHE", path)
	return path
}

// tunable is a product that every kernel of a back-end serves.
func tunable[T Element]() *product[T, T, int32] {
	return newProduct[T, int32](shape{rows: 256, cols: 256, n: 64, blockM: 64, blockK: 64, density: 0.5, alpha: 1, seed: 31})
}

// A tuner describes every candidate, its plan is right, and the next plan uses what was measured.
func TestTuner(t *testing.T) {
	needsAllWorkers(t) // measurements with fewer are not kept
	onEach(t, testTuner[BFloat16])
}

func testTuner[T Element](t *testing.T, engine *Engine) {
	path := ownCache(t)
	p := tunable[T]()
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	options := PlanOptions{N: p.n, LDB: p.b.Stride, LDC: p.c0.Stride}
	before := must(m.Plan(context.Background(), options))(t)
	defer before.Close()
	if info := before.Info(); info.ChosenBy != ChosenByModel || info.Predicted <= 0 || info.Measured != 0 {
		t.Errorf("without measurements: chosen by %v, predicted %v, measured %v", info.ChosenBy, info.Predicted, info.Measured)
	}
	tuner := must(tuning.NewTuner(context.Background(), m, options, tuning.Options{Budget: 20 * time.Millisecond, All: true}))(t)
	defer tuner.Close()
	steps := 0
	for {
		_, more, err := tuner.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		steps++
	}
	candidates := must(tuner.Candidates())(t)
	best, measured := "", 0
	for _, c := range candidates {
		if c.Best {
			best += c.Kernel
		}
		switch {
		case c.Runs > 0:
			measured++
			if c.Median <= 0 || c.Predicted <= 0 || !c.Serves {
				t.Errorf("%+v was measured", c)
			}
		case c.Note == "":
			t.Errorf("%s was not measured, and nothing says why", c.Kernel)
		}
	}
	if measured == 0 || steps < measured {
		t.Fatalf("%d of %d candidates measured in %d steps", measured, len(candidates), steps)
	}
	plan := must(tuner.Finish())(t)
	defer plan.Close()
	if info := plan.Info(); info.Kernel != best || info.ChosenBy != ChosenByTuning || info.Measured <= 0 || info.Warning != "" {
		t.Errorf("the plan is %+v, the best was %s", info, best)
	}
	c := p.newC()
	if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
		t.Fatal(err)
	}
	p.verify(t, engine, plan.Info(), c)

	if _, _, err := tuner.Step(context.Background()); !errors.Is(err, ErrBadArgument) {
		t.Errorf("a step after the plan: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), best) {
		t.Errorf("the cache does not know %s: %q, %v", best, text, err)
	}
	after := must(m.Plan(context.Background(), options))(t)
	defer after.Close()
	if info := after.Info(); info.Kernel != best || info.ChosenBy != ChosenByCache || info.Measured <= 0 {
		t.Errorf("with measurements: %+v, the best was %s", info, best)
	}
	other := must(m.Plan(context.Background(), PlanOptions{N: p.n / 2}))(t)
	defer other.Close()
	if info := other.Info(); info.ChosenBy != ChosenByModel {
		t.Errorf("another product is chosen by %v", info.ChosenBy)
	}
}

// Options with Tuning have a plan measured once, and not again what the cache knows.
func TestPlanWithTuning(t *testing.T) {
	needsAllWorkers(t) // measurements with fewer are not kept
	onEach(t, func(t *testing.T, engine *Engine) {
		ownCache(t)
		p := tunable[Float16]()
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer m.Close()
		for _, want := range []ChosenBy{ChosenByTuning, ChosenByCache} {
			plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, Tuning: time.Millisecond}))(t)
			if info := plan.Info(); info.ChosenBy != want || info.Measured <= 0 || info.Reason == "" {
				t.Errorf("%+v, want chosen by %v", info, want)
			}
			plan.Close()
		}
	})
}

// A cache that cannot be written costs a warning and nothing else; one that is not a cache is left where it is.
func TestTuningWithoutCache(t *testing.T) {
	needsAllWorkers(t) // measurements with fewer are not kept
	engine := newEngine(t, CPU)
	folder := t.TempDir()
	t.Setenv("SPARSEK_TUNING_CACHE", filepath.Join(folder, "none", "tuning.txt"))
	if err := os.WriteFile(filepath.Join(folder, "none"), nil, 0o666); err != nil { // a file where a folder should be
		t.Fatal(err)
	}
	p := tunable[float32]()
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, Tuning: time.Millisecond}))(t)
	defer plan.Close()
	if info := plan.Info(); info.ChosenBy != ChosenByTuning || !strings.Contains(info.Warning, "none") {
		t.Errorf("%+v, want a plan with a warning", info)
	}
}

func TestTunerRefuses(t *testing.T) {
	engine := newEngine(t, CPU)
	ownCache(t)
	p := tunable[float32]()
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := tuning.NewTuner(stopped, m, PlanOptions{N: 8}, tuning.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if _, err := tuning.NewTuner(context.Background(), m, PlanOptions{N: 8, Kernel: "cpu_generic"}, tuning.Options{}); !errors.Is(err, ErrBadArgument) {
		t.Errorf("with a kernel's name: %v", err)
	}
	if _, err := tuning.NewTuner(context.Background(), m, PlanOptions{N: 8}, tuning.Options{Budget: -1}); !errors.Is(err, ErrBadArgument) {
		t.Errorf("a negative budget: %v", err)
	}
	early := must(tuning.NewTuner(context.Background(), m, PlanOptions{N: 8}, tuning.Options{}))(t)
	if _, err := early.Finish(); !errors.Is(err, ErrBadArgument) {
		t.Errorf("a plan before any measurement: %v", err)
	}
	early.Close()
	if _, _, err := early.Step(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("a step after Close: %v", err)
	}
	bare := p.a
	bare.Values = nil
	pattern := must(NewMatrix(context.Background(), engine, bare))(t)
	defer pattern.Close()
	if _, err := tuning.NewTuner(context.Background(), pattern, PlanOptions{N: 8}, tuning.Options{}); !errors.Is(err, ErrNullPointer) {
		t.Errorf("without values: %v", err)
	}
}

// Several goroutines tune at once, beside products of the same matrix.
func TestTunersAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		ownCache(t)
		p := tunable[BFloat16]()
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer m.Close()
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				plan, err := m.Plan(context.Background(), PlanOptions{N: p.n, LDB: p.b.Stride, LDC: p.c0.Stride, Tuning: time.Duration(i) * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				defer plan.Close()
				c := p.newC()
				if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
					t.Error(err)
				}
				p.verify(t, engine, plan.Info(), c)
			})
		}
		group.Wait()
	})
}

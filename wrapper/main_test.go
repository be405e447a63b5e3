// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"flag"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

var workers = flag.Int("workers", 0, "the most CTAs or threads of each product of the tests, so that few take many tiles; 0: all")

// Examples cannot skip themselves, nor set variables; and no test is to read or write its user's measurements.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Setenv("SPARSEK_TUNING_CACHE", "off")
	if _, err := Default(); errors.Is(err, ErrLibraryNotFound) && flag.Lookup("test.skip").Value.String() == "" {
		flag.Set("test.skip", "^Example")
	}
	m.Run()
}

// library opens libsparsek, or skips the test where there is none. One that is there and does not load is a failure.
func library(t testing.TB) *Library {
	t.Helper()
	lib, err := Default()
	if errors.Is(err, ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func newEngine(t testing.TB, backend Backend) *Engine {
	t.Helper()
	lib := library(t)
	engine, err := lib.NewEngine(EngineOptions{Backend: backend, Workers: *workers})
	if backend == CUDA && errors.Is(err, ErrNoDevice) {
		t.Skip("skipped: no GPU")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// needsAllWorkers skips what depends on how many CTAs or threads a product may have.
func needsAllWorkers(t testing.TB) {
	t.Helper()
	if *workers != 0 {
		t.Skip("skipped: -workers limits the workers of each product")
	}
}

// onEach runs a test on each back-end.
func onEach(t *testing.T, test func(t *testing.T, engine *Engine)) {
	for _, backend := range []Backend{CPU, CUDA} {
		t.Run(backend.String(), func(t *testing.T) { test(t, newEngine(t, backend)) })
	}
}

func must[T any](value T, err error) func(rapid.TB) T {
	return func(t rapid.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// roundoff is the unit roundoff of T.
func roundoff[T Element]() float64 {
	switch DTypeOf[T]() {
	case BF16:
		return math.Ldexp(1, -8)
	case FP16:
		return math.Ldexp(1, -11)
	}
	return math.Ldexp(1, -24)
}

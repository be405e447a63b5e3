// SPDX-License-Identifier: Apache-2.0

package blas

import (
	"errors"
	"strings"
	"testing"
)

func TestSgemm(t *testing.T) {
	l, err := Open(2)
	if errors.Is(err, ErrNotInstalled) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if l.Config() == "" {
		t.Error("no description")
	}
	const m, n, k = 3, 5, 4
	a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
	for i := range a {
		a[i] = float32(i%7 - 3)
	}
	for i := range b {
		b[i] = float32(i%5 - 2)
	}
	if err := l.Sgemm(m, n, k, a, b, c); err != nil {
		t.Fatal(err)
	}
	for i := range m {
		for j := range n {
			want := float32(0)
			for p := range k {
				want += a[i*k+p] * b[p*n+j]
			}
			if c[i*n+j] != want {
				t.Errorf("(%d, %d) = %v, want %v", i, j, c[i*n+j], want)
			}
		}
	}
	if err := l.Sgemm(m, n, k, a, b, c[1:]); err == nil {
		t.Error("a C that is too short is accepted")
	}
	if err := l.Sgemm(0, n, k, a, b, c); err == nil {
		t.Error("0 rows are accepted")
	}
}

func TestNarrowed(t *testing.T) {
	got := Narrowed([]string{"HOME=/", "OPENBLAS_CORETYPE=Haswell", "OPENBLAS_THREAD_TIMEOUT=4", "OPENBLASX=1"})
	if len(got) != 1 || !strings.HasPrefix(got[0], "OPENBLAS_CORETYPE=Haswell is set") {
		t.Errorf("%q", got)
	}
}

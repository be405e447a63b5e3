// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/sparsek/sparsek/examples/internal/setup/setuptest"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// multiply is s times x (cols, columns) plus a bias for each column, element by element in float64.
func multiply(s *bsr.Entries, x []float64, columns int, bias []float64) []float64 {
	y := make([]float64, s.Rows*columns)
	for i := range y {
		y[i] = bias[i%columns]
	}
	for i, v := range s.Value {
		for j := range columns {
			y[int(s.Row[i])*columns+j] += v * x[int(s.Col[i])*columns+j]
		}
	}
	return y
}

// scoresOf computes the network in float64. absolute: with the magnitudes of weights and biases, which bounds what the
// errors of rounding are relative to.
func scoresOf(l *library, absolute bool) []float64 {
	of := func(x []float64) []float64 {
		y := append([]float64(nil), x...)
		for i := range y {
			if absolute {
				y[i] = math.Abs(y[i])
			}
		}
		return y
	}
	n := network{of(l.network.first), of(l.network.bias0), of(l.network.second), of(l.network.bias1)}
	layer := multiply(&l.adjacency, multiply(&l.features, n.first, hidden, make([]float64, hidden)), hidden, n.bias0)
	dense := bsr.Entries{Rows: len(l.class), Cols: hidden}
	for i, v := range layer {
		dense.Add(int32(i/hidden), int32(i%hidden), max(v, 0))
	}
	return multiply(&l.adjacency, multiply(&dense, n.second, classes, make([]float64, classes)), classes, n.bias1)
}

func TestScores(t *testing.T) {
	for _, nodes := range []int{1, 17, 3000} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) { checkScores(t, newLibrary(nodes, 6, 7)) })
	}
}

func checkScores(t *testing.T, l *library) {
	want, magnitude := scoresOf(l, false), scoresOf(l, true)
	setuptest.OnEachDevice(t, func(t *testing.T, device string) {
		got, err := run(t.Context(), device, l, 2, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		// Sums of float32 by rows of up to some hundred elements: each rounding is 6e-8 of the magnitude.
		worst := 0.0
		for i, v := range got {
			worst = max(worst, math.Abs(float64(v)-want[i])/magnitude[i])
		}
		if !(worst < 2e-6) {
			t.Errorf("a score is wrong by %.1e of its magnitude", worst)
		}
		if len(l.class) < 1000 {
			return // chance decides
		}
		byWords, byNetwork := l.byWords(), l.accuracy(func(i int) float64 { return float64(got[i]) })
		if byNetwork < byWords+0.1 {
			t.Errorf("%.3f of the nodes are right by the network, and %.3f by their words alone", byNetwork, byWords)
		}
	})
}

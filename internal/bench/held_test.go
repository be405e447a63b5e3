// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// SMs are held while a product is timed, and only then; all that went wrong is said.
func TestHeldBy(t *testing.T) {
	held := 0
	var seen []int
	broken := errors.New("broken")
	var failHold, failTime, failRelease error
	list := []entrant{
		{name: Ours, time: func(context.Context, int) ([]time.Duration, error) {
			seen = append(seen, held)
			return []time.Duration{time.Duration(1 + held)}, failTime
		}, run: func(context.Context, int) (int, error) { return 0, nil }, close: func() error { return nil }},
		{name: OursGraph}, {name: CUBLASFull, full: true},
	}
	all := heldBy(list, []int{1, 4}, func(_ context.Context, count int) (func() error, error) {
		if failHold != nil {
			return nil, failHold
		}
		held = count
		return func() error { held = 0; return failRelease }, nil
	})
	var names []string
	for _, e := range all {
		names = append(names, e.name)
	}
	if want := []string{Ours, OursGraph, CUBLASFull, "sparsek_held_1", "sparsek_held_4"}; !slices.Equal(names, want) {
		t.Fatalf("%v, want %v", names, want)
	}
	for _, e := range []entrant{all[4], all[0], all[3]} {
		times, err := e.time(context.Background(), 1)
		if err != nil || len(times) != 1 || times[0] != time.Duration(1+e.held) {
			t.Errorf("%s: %v, %v", e.name, times, err)
		}
		if e.held > 0 && (e.of != Ours || e.run != nil || e.close != nil) {
			t.Errorf("%+v", e)
		}
	}
	if want := []int{4, 0, 1}; !slices.Equal(seen, want) || held != 0 {
		t.Errorf("held were %v, want %v, and %d are still", seen, want, held)
	}
	for _, fault := range []*error{&failHold, &failTime, &failRelease} {
		*fault = broken
		if _, err := all[3].time(context.Background(), 1); !errors.Is(err, broken) || held != 0 {
			t.Errorf("%v, %d still held", err, held)
		}
		*fault = nil
	}
}

// Those with held SMs are compared with ours where as many are held, and with themselves where none is.
func TestCompareHeld(t *testing.T) {
	one := func(name, of string, held int, seconds float64) Timed {
		return Timed{Name: name, Of: of, Held: held, Dense: name != Ours && of != Ours, Runs: 4, Seconds: seconds, Quartiles: [2]float64{seconds, seconds}}
	}
	r := &Result{Pattern: "random", Density: 0.1, Timed: []Timed{one(Ours, "", 0, 2), one(CUBLAS, "", 0, 10), one("ours_1", Ours, 1, 4), one("cublas_1", CUBLAS, 1, 12)}}
	r.compare()
	for i, want := range []struct{ speedUp, slowdown float64 }{{0, 0}, {5, 0}, {0, 2}, {3, 1.2}} {
		var got struct{ speedUp, slowdown float64 }
		if s := r.Timed[i].SpeedUp; s != nil {
			got.speedUp = s.Ratio
		}
		if s := r.Timed[i].Slowdown; s != nil {
			got.slowdown = s.Ratio
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", r.Timed[i].Name, got, want)
		}
	}
	denser := &Result{Pattern: "random", Density: 0.5, Timed: r.Timed}
	if found := BreakEvens([]*Result{r, denser}); found != nil {
		t.Errorf("break-evens of products beside another kernel: %+v", found)
	}
}

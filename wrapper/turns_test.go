// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// twoPlans are plans of matrices of ones and of twos, and four pairs of operands: Bs of ones, and Cs that hold nothing
// yet.
func twoPlans(t *testing.T, engine *Engine) (plans []*Plan, operands []Operands, results []*DeviceBuffer[float32]) {
	for i := range 2 {
		a := small()
		for j := range a.Values {
			a.Values[j] = float32(i + 1)
		}
		plans = append(plans, must(must(NewMatrix(context.Background(), engine, a))(t).Plan(context.Background(), PlanOptions{N: 8}))(t))
	}
	ones := make([]float32, 48)
	for i := range ones {
		ones[i] = 1
	}
	for range 4 {
		b, c := must(NewBuffer[float32](engine, 48))(t), must(NewBuffer[float32](engine, 32))(t)
		if err := errors.Join(b.Write(context.Background(), ones), c.Fill(context.Background(), 0xff)); err != nil {
			t.Fatal(err)
		}
		operands = append(operands, Operands{B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: b}, C: DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: c}})
		results = append(results, c)
	}
	return plans, operands, results
}

// checkTwoPlans requires the Cs to be of the plans' matrices in turn.
func checkTwoPlans(t *testing.T, results []*DeviceBuffer[float32]) {
	t.Helper()
	for i, c := range results {
		got := make([]float32, 32)
		if err := c.Read(context.Background(), got); err != nil {
			t.Fatal(err)
		}
		// The last block row has two blocks of three columns.
		if want := float32(6 * (i%2 + 1)); got[31] != want {
			t.Errorf("C number %d holds %g, want %g", i, got[31], want)
		}
	}
}

// Each plan and each pair of operands has its turn, also the untimed ones.
func TestTimeInTurn(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		plans, operands, results := twoPlans(t, engine)
		options := timing.InTurnOptions{Options: timing.Options{Alpha: 1, Operands: operands, Warmup: 1, Repeats: 1}, Between: 2}
		times, err := timing.InTurn(context.Background(), plans, options)
		if err != nil || len(times) != 1 || times[0] <= 0 {
			t.Fatalf("%v, error %v", times, err)
		}
		checkTwoPlans(t, results)
		if times, err = timing.InTurn(context.Background(), plans, timing.InTurnOptions{Options: timing.Options{Operands: operands, Repeats: 3}}); len(times) != 3 {
			t.Errorf("%d times, error %v", len(times), err)
		}
		stopped, stop := context.WithCancel(context.Background())
		stop()
		if _, err := timing.InTurn(stopped, plans, options); !errors.Is(err, context.Canceled) {
			t.Errorf("a stopped context: %v", err)
		}
		_, err = timing.InTurn(context.Background(), nil, options)
		wantFault(t, err, ErrBadSize, "no plans")
		options.Operands = nil
		_, err = timing.InTurn(context.Background(), plans, options)
		wantFault(t, err, ErrBadSize, "no operands")
		options.Operands, options.Repeats = operands, 0
		_, err = timing.InTurn(context.Background(), plans, options)
		wantFault(t, err, ErrBadSize, "0 repeats")
	})
}

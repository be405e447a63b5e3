// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Every product is in the graph, with the plan and the operands whose turn it is.
func TestTimeGraph(t *testing.T) {
	onEach(t, func(t *testing.T, ctx *Engine) {
		plans, operands, results := twoPlans(t, ctx)
		options := GraphTimeOptions[float32]{TimeOptions: TimeOptions[float32]{Alpha: 1, Operands: operands, Warmup: 1, Repeats: 3}, Products: 8}
		times, err := TimeGraph(context.Background(), plans, options)
		if ctx.Info().Backend == CPU {
			wantFault(t, err, ErrNoDevice, "no GPU")
		} else if err != nil || len(times) != 3 {
			t.Fatalf("%v, error %v", times, err)
		} else {
			checkTwoPlans(t, results)
		}
		for _, d := range times {
			if d < 0 || d > time.Minute {
				t.Errorf("a product took %v", d)
			}
		}

		stopped, stop := context.WithCancel(context.Background())
		stop()
		if _, err := TimeGraph(stopped, plans, options); !errors.Is(err, context.Canceled) {
			t.Errorf("a stopped context: %v", err)
		}
		for _, fault := range []struct {
			spoil    func(*GraphTimeOptions[float32])
			speaksOf string
		}{
			{func(o *GraphTimeOptions[float32]) { o.Operands = nil }, "no operands"},
			{func(o *GraphTimeOptions[float32]) { o.Repeats = 0 }, "0 replays"},
			{func(o *GraphTimeOptions[float32]) { o.Products = 0 }, "0 products"},
			{func(o *GraphTimeOptions[float32]) { o.Warmup = -1 }, "-1 replays to warm up"},
		} {
			spoilt := options
			fault.spoil(&spoilt)
			_, err := TimeGraph(context.Background(), plans, spoilt)
			wantFault(t, err, ErrBadSize, fault.speaksOf)
		}
		_, err = TimeGraph(context.Background(), nil, options)
		wantFault(t, err, ErrBadSize, "no plans")
		if err := plans[1].Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := TimeGraph(context.Background(), plans, options); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed plan: %v", err)
		}
	})
}

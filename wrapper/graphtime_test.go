// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// Every product is in the graph, with the plan and the operands whose turn it is.
func TestTimeGraph(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		plans, operands, results := twoPlans(t, engine)
		options := timing.GraphOptions{Options: timing.Options{Alpha: 1, Operands: operands, Warmup: 1, Repeats: 3}, Products: 8}
		times, err := timing.Graph(context.Background(), plans, options)
		if engine.Info().Backend == CPU {
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
		if _, err := timing.Graph(stopped, plans, options); !errors.Is(err, context.Canceled) {
			t.Errorf("a stopped context: %v", err)
		}
		for _, fault := range []struct {
			spoil    func(*timing.GraphOptions)
			speaksOf string
		}{
			{func(o *timing.GraphOptions) { o.Operands = nil }, "no operands"},
			{func(o *timing.GraphOptions) { o.Repeats = 0 }, "0 replays"},
			{func(o *timing.GraphOptions) { o.Products = 0 }, "0 products"},
			{func(o *timing.GraphOptions) { o.Warmup = -1 }, "-1 replays to warm up"},
		} {
			spoilt := options
			fault.spoil(&spoilt)
			_, err := timing.Graph(context.Background(), plans, spoilt)
			wantFault(t, err, ErrBadSize, fault.speaksOf)
		}
		_, err = timing.Graph(context.Background(), nil, options)
		wantFault(t, err, ErrBadSize, "no plans")
		if err := plans[1].Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := timing.Graph(context.Background(), plans, options); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed plan: %v", err)
		}
	})
}

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

// The steps of a replayed graph are what was enqueued, each time for what the buffers hold by then.
func TestReplay(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		background := context.Background()
		options := timing.ReplayOptions{Steps: 3, Warmup: 1, Repeats: 2}
		p := newProduct[BFloat16, int32](shape{rows: 256, cols: 256, n: 64, blockM: 64, blockK: 64, density: 0.5, alpha: 1, seed: 4})
		m := must(NewMatrix(background, engine, p.a))(t)
		defer m.Close()
		alignment := 2
		if engine.Info().Backend == CUDA {
			alignment = 16
		}
		plan := must(m.Plan(background, p.planOptions(alignment)))(t)
		defer plan.Close()
		b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
		defer b.Buffer.Close()
		defer c.Buffer.Close()
		steps := 0
		step := func(ctx context.Context, s *Stream) error {
			steps++
			return plan.Enqueue(ctx, s, p.alpha, 0, Operands{B: b, C: c})
		}
		if engine.Info().Backend == CUDA {
			s := must(engine.NewStream())(t)
			defer s.Close()
			if err := errors.Join(step(background, s), s.Wait(background), c.Buffer.Write(background, p.newC().Data)); err != nil {
				t.Fatal(err)
			}
		}
		steps = 0
		times, err := timing.Replay(background, engine, options, step)
		if engine.Info().Backend == CPU {
			wantFault(t, err, ErrNoDevice, "no graphs")
		} else {
			if err != nil || len(times) != 2 || steps != 3 {
				t.Fatalf("%v of %d steps, error %v", times, steps, err)
			}
			got := p.newC()
			if err := c.Buffer.Read(background, got.Data); err != nil {
				t.Fatal(err)
			}
			p.verify(t, engine, plan.Info(), got)
		}
		for _, spoilt := range []timing.ReplayOptions{{Repeats: 1}, {Steps: 1}, {Steps: 1, Repeats: 1, Warmup: -1}} {
			_, err := timing.Replay(background, engine, spoilt, step)
			wantFault(t, err, ErrBadSize, "replays")
		}
	})
}

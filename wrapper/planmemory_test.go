// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"strconv"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// A plan that is longer than what is copied to a GPU at once.
func TestLongPlan(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		p := newProduct[BFloat16, int32](shape{rows: 6144, cols: 8192, n: 8, blockM: 8, blockK: 8, density: 0.15, alpha: 1, seed: 3})
		if engine.Info().Backend == CUDA {
			p.kernel = "gather_bf16_128_256" // whose plan is large
		}
		c, info := p.run(t, engine, false)
		if engine.Info().Backend == CUDA && info.WorkspaceBytes < 2<<20 {
			t.Errorf("the plan takes %d bytes, too few to be copied piece by piece", info.WorkspaceBytes)
		}
		p.verify(t, engine, info, c)
	})
}

// Plans lie where others lay before them. One that is closed while its products run is theirs until they have ended.
func TestPlansComeAndGo(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for worker := range uint64(4) {
			t.Run(strconv.FormatUint(worker, 10), func(t *testing.T) {
				t.Parallel()
				for turn := range uint64(6) {
					planAndLeave(t, engine, 10*worker+turn)
				}
			})
		}
	})
}

// planAndLeave closes a plan at once, and looks at what its products gave then.
func planAndLeave(t *testing.T, engine *Engine, seed uint64) {
	p := newProduct[BFloat16, int32](shape{rows: 768, cols: 640, n: 64, blockM: 32, blockK: 32, density: 0.5, alpha: 1, seed: seed})
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
	info := plan.Info()
	stream := must(engine.NewStream())(t)
	defer stream.Close()
	b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
	defer b.Buffer.Close()
	defer c.Buffer.Close()
	for range 20 {
		if err := plan.Enqueue(context.Background(), stream, p.alpha, p.beta, Operands{B: b, C: c}); err != nil {
			t.Fatal(err)
		}
	}
	plan.Close()
	if err := stream.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := p.newC()
	if err := c.Buffer.Read(context.Background(), got.Data); err != nil {
		t.Fatal(err)
	}
	if report, err := check.Product(engine.Library(), p.a, p.checkArgs(got, info)); err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
}

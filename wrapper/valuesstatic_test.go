// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

func testStaticValues[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	shapes := []shape{fewTiles(kernel)}
	if strings.HasPrefix(kernel.Name, "skinny") {
		// One column of tiles, of more than a GPU computes at once, with rows of several lengths.
		few := shapes[0]
		few.n, few.rows, few.cols, few.density = kernel.TileN, 50*few.rows, 3*few.cols, 0.3
		shapes = append(shapes, few)
	}
	for _, s := range shapes {
		r := newRepeatable[T](t, engine, s)
		want := must(r.multiply(1, nil))(t)
		m := must(NewMatrix(context.Background(), engine, r.p.a))(t)
		r.plan = must(m.Plan(context.Background(), PlanOptions{N: r.p.n, Kernel: kernel.Name, Compute: computeOf(kernel.Name), ValuesStatic: true}))(t)
		// In one stream, so that each product begins while the one before it ends.
		stream := must(engine.NewStream())(t)
		var results []*DeviceBuffer[T]
		for range 20 {
			c := upload(t, engine, r.c0)
			if err := r.plan.Enqueue(context.Background(), stream, 1, 1, Operands{B: r.b, C: DeviceDense[T]{Rows: r.p.a.Rows, Cols: r.p.n, Buffer: c}}); err != nil {
				t.Fatal(err)
			}
			results = append(results, c)
		}
		if err := stream.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i, c := range results {
			got := make([]T, c.Len())
			if err := c.Read(context.Background(), got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("N = %d: product %d of a plan with ValuesStatic has other bits than without", r.p.n, i)
			}
		}
		stream.Close()
		r.plan.Close()
		m.Close()
	}
}

// The bits are the same whether values are static or not.
func TestStaticValues(t *testing.T) {
	onEachKernel(t, testStaticValues[BFloat16], testStaticValues[Float16], testStaticValues[float32], testStaticValues[float64])
}

// Where values are static and there is room for two launches, another kernel runs.
func TestStaticValuesReachTheKernel(t *testing.T) {
	engine := newEngine(t, CUDA)
	library := must(foreign.Open(true, engine.Info().Device))(t)
	defer library.Close()
	stream := must(engine.StreamAt(library.Stream()))(t)
	defer stream.Close()
	p := newProduct[BFloat16, int32](shape{rows: 256, cols: 512, n: 16, blockM: 64, blockK: 64, density: 0.5, alpha: 1, seed: 5})
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	b := DeviceDense[BFloat16]{Rows: p.b.Rows, Cols: p.b.Cols, Buffer: upload(t, engine, p.b.Data)}
	c := DeviceDense[BFloat16]{Rows: p.a.Rows, Cols: p.n, Buffer: must(NewBuffer[BFloat16](engine, p.a.Rows*p.n))(t)}
	kernels := func(kernel string, static bool) []string {
		plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, Kernel: kernel, Compute: computeOf(kernel), ValuesStatic: static}))(t)
		defer plan.Close()
		graph := must(library.Capture(foreign.CaptureRelaxed, func() error {
			return plan.Enqueue(context.Background(), stream, 1, 0, Operands{B: b, C: c})
		}))(t)
		defer graph.Close()
		if len(graph.Kernels()) != 1 {
			t.Fatalf("%s: the product is %q, want one kernel", kernel, graph.Kernels())
		}
		return graph.Kernels()
	}
	for kernel, differs := range map[string]bool{"skinny_bf16_64_16": true, "skinny_bf16_64_64": false} {
		plain, static := kernels(kernel, false), kernels(kernel, true)
		if slices.Equal(plain, static) == differs {
			t.Errorf("%s: static values run %q, others %q", kernel, static, plain)
		}
	}
}

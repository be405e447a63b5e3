// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// usual is a product of a size at which libraries take their fast ways, in rows of unequal lengths.
func usual(kernel Kernel) *product[BFloat16, BFloat16, int32] {
	return libraryProduct[BFloat16, BFloat16](kernel, shape{rows: 1024, cols: 768, n: columnsFor(kernel, 384), blockM: 64, blockK: 64, density: 0.5, alpha: 1, beta: -0.5, seed: 12})
}

// New values reach the layout that the library reads: from the host, from the device, and changed there in place.
func TestLibraryValues(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		p := usual(kernel)
		onHost := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer onHost.Close()
		onGPU, done, err := onDevice(t, engine, p.a)
		must(onGPU, err)(t)
		defer done()
		for name, m := range map[string]*Matrix{"index on the host": onHost, "index on the device": onGPU} {
			t.Run(name, func(t *testing.T) { testNewValues(t, engine, m, usual(kernel)) })
		}
	})
}

// One plan in many streams and goroutines at once, with values that each product lays out anew too.
func TestLibraryKernelsInManyStreams(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		p := usual(kernel)
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
		defer plan.Close()
		b := inBuffer(t, engine, p.b, 0)
		defer b.Buffer.Close()
		for range 2 {
			var group sync.WaitGroup
			for range 6 {
				group.Go(func() { multiplyOften(t, engine, p, plan, b) })
			}
			group.Wait()
			if err := SetDeviceValues(context.Background(), m, filled(t, engine, p.a.Values)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// multiplyOften verifies the last of some products in a stream of its own.
func multiplyOften(t *testing.T, engine *Engine, p *product[BFloat16, BFloat16, int32], plan *Plan, b DeviceDense[BFloat16]) {
	stream, err := engine.NewStream()
	if err != nil {
		t.Error(err)
		return
	}
	defer stream.Close()
	buffer, err := NewBuffer[BFloat16](engine, len(p.c0.Data))
	if err != nil {
		t.Error(err)
		return
	}
	defer buffer.Close()
	c := p.newC()
	for range 10 {
		err := errors.Join(buffer.Write(context.Background(), p.c0.Data),
			multiplyIn(plan, stream, p.alpha, p.beta, Operands{B: b, C: DeviceDense[BFloat16]{Rows: c.Rows, Cols: c.Cols, Stride: c.Stride, Buffer: buffer}}),
			buffer.Read(context.Background(), c.Data))
		if err != nil {
			t.Error(err)
			return
		}
		if report, err := check.Product(engine.Library(), p.a, p.checkArgs(c, plan.Info())); err != nil {
			t.Errorf("%v\n%+v", err, report)
			return
		}
	}
}

// Products are captured with all that they need: a replay gives the product of the values that are there then.
func TestLibraryKernelsInGraphs(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		p := usual(kernel)
		p.beta = 0
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
		defer plan.Close()
		b := inBuffer(t, engine, p.b, 0)
		defer b.Buffer.Close()
		for round := range 2 {
			c := p.newC()
			dc := inBuffer(t, engine, c, 0)
			defer dc.Buffer.Close()
			times, err := timing.Graph(context.Background(), []*Plan{plan}, timing.GraphOptions{
				Options: timing.Options{Alpha: p.alpha, Operands: []Operands{{B: b, C: dc}}, Warmup: 1, Repeats: 3}, Products: 4})
			if err != nil || len(times) != 3 {
				t.Fatalf("round %d: %v, error %v", round, times, err)
			}
			if err := dc.Buffer.Read(context.Background(), c.Data); err != nil {
				t.Fatal(err)
			}
			if report, err := check.Product(engine.Library(), p.a, p.checkArgs(c, plan.Info())); err != nil {
				t.Fatalf("round %d: %v\n%+v", round, err, report)
			}
			p.a.Values = doubled(p.a.Values)
			if err := SetDeviceValues(context.Background(), m, filled(t, engine, p.a.Values)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

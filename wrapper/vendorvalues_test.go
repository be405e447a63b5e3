// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// usual is a product of a size at which libraries take their fast ways, in rows of unequal lengths.
func usual(kernel Kernel) *product[BFloat16, BFloat16, int32] {
	return libraryProduct[BFloat16, BFloat16](kernel, shape{rows: 1024, cols: 768, n: 384, blockM: 64, blockK: 64, density: 0.5, alpha: 1, beta: -0.5, seed: 12})
}

func doubled(values []BFloat16) []BFloat16 {
	twice := make([]BFloat16, len(values))
	for i, v := range values {
		twice[i] = ToBFloat16(2 * v.Float32())
	}
	return twice
}

// New values reach the layout that the library reads: from the host, from the device, and changed there in place.
func TestLibraryValues(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, ctx *Engine, kernel Kernel) {
		p := usual(kernel)
		onHost := must(NewMatrix(ctx, p.a))(t)
		defer onHost.Close()
		onGPU, done, err := onDevice(t, ctx, p.a)
		must(onGPU, err)(t)
		defer done()
		for name, m := range map[string]*Matrix[BFloat16]{"index on the host": onHost, "index on the device": onGPU} {
			t.Run(name, func(t *testing.T) { testLibraryValues(t, ctx, m, usual(kernel)) })
		}
	})
}

func testLibraryValues(t *testing.T, ctx *Engine, m *Matrix[BFloat16], p *product[BFloat16, BFloat16, int32]) {
	narrow := *p // the same matrix, and another plan of it
	narrow.n, narrow.b.Cols, narrow.c0.Cols = 64, 64, 64
	var plans []*Plan[BFloat16]
	for _, of := range []*product[BFloat16, BFloat16, int32]{p, &narrow} {
		plan := must(m.Plan(context.Background(), of.planOptions(16)))(t)
		defer plan.Close()
		plans = append(plans, plan)
	}
	check := func(what string) {
		t.Helper()
		for i, of := range []*product[BFloat16, BFloat16, int32]{p, &narrow} {
			of.a.Values = p.a.Values
			c := of.newC()
			if err := plans[i].Multiply(context.Background(), of.alpha, of.b, of.beta, c); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if report, err := Check(ctx.Library(), of.a, of.checkArgs(c, plans[i].Info())); err != nil {
				t.Fatalf("%s: %v\n%+v", what, err, report)
			}
		}
	}
	check("first values")
	p.a.Values = doubled(p.a.Values)
	if err := m.SetValues(context.Background(), p.a.Values); err != nil {
		t.Fatal(err)
	}
	check("new values from the host")
	p.a.Values = doubled(p.a.Values)
	buffer := filled(t, ctx, p.a.Values)
	if err := m.SetDeviceValues(context.Background(), buffer); err != nil {
		t.Fatal(err)
	}
	check("values in device memory")
	p.a.Values = doubled(p.a.Values)
	if err := buffer.Write(p.a.Values); err != nil {
		t.Fatal(err)
	}
	check("changed in place")
	p.a.Values = doubled(p.a.Values)
	if err := m.SetValues(context.Background(), p.a.Values); err != nil {
		t.Fatal(err)
	}
	check("from the host again")
}

// One plan in many streams and goroutines at once, with values that each product lays out anew too.
func TestLibraryKernelsInManyStreams(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, ctx *Engine, kernel Kernel) {
		p := usual(kernel)
		m := must(NewMatrix(ctx, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
		defer plan.Close()
		b := inBuffer(t, ctx, p.b, 0)
		defer b.Buffer.Close()
		for range 2 {
			var group sync.WaitGroup
			for range 6 {
				group.Go(func() { multiplyOften(t, ctx, p, plan, b) })
			}
			group.Wait()
			if err := m.SetDeviceValues(context.Background(), filled(t, ctx, p.a.Values)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// multiplyOften verifies the last of some products in a stream of its own.
func multiplyOften(t *testing.T, ctx *Engine, p *product[BFloat16, BFloat16, int32], plan *Plan[BFloat16], b DeviceDense[BFloat16]) {
	stream, err := ctx.NewStream()
	if err != nil {
		t.Error(err)
		return
	}
	defer stream.Close()
	buffer, err := NewBuffer[BFloat16](ctx, len(p.c0.Data))
	if err != nil {
		t.Error(err)
		return
	}
	defer buffer.Close()
	c := p.newC()
	for range 10 {
		err := errors.Join(buffer.Write(p.c0.Data),
			plan.Multiply(context.Background(), p.alpha, b, p.beta, DeviceDense[BFloat16]{Rows: c.Rows, Cols: c.Cols, Stride: c.Stride, Buffer: buffer}, WithStream(stream)),
			buffer.Read(c.Data))
		if err != nil {
			t.Error(err)
			return
		}
		if report, err := Check(ctx.Library(), p.a, p.checkArgs(c, plan.Info())); err != nil {
			t.Errorf("%v\n%+v", err, report)
			return
		}
	}
}

// Products are captured with all that they need: a replay gives the product of the values that are there then.
func TestLibraryKernelsInGraphs(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, ctx *Engine, kernel Kernel) {
		p := usual(kernel)
		p.beta = 0
		m := must(NewMatrix(ctx, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
		defer plan.Close()
		b := inBuffer(t, ctx, p.b, 0)
		defer b.Buffer.Close()
		for round := range 2 {
			c := p.newC()
			dc := inBuffer(t, ctx, c, 0)
			defer dc.Buffer.Close()
			times, err := TimeGraph(context.Background(), []*Plan[BFloat16]{plan}, GraphTimeOptions[BFloat16]{
				TimeOptions: TimeOptions[BFloat16]{Alpha: p.alpha, Operands: []Operands[BFloat16]{{b, dc}}, Warmup: 1, Repeats: 3}, Products: 4})
			if err != nil || len(times) != 3 {
				t.Fatalf("round %d: %v, error %v", round, times, err)
			}
			if err := dc.Buffer.Read(c.Data); err != nil {
				t.Fatal(err)
			}
			if report, err := Check(ctx.Library(), p.a, p.checkArgs(c, plan.Info())); err != nil {
				t.Fatalf("round %d: %v\n%+v", round, err, report)
			}
			p.a.Values = doubled(p.a.Values)
			if err := m.SetDeviceValues(context.Background(), filled(t, ctx, p.a.Values)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

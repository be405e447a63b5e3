// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"fmt"
	"log"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// Another library owns the memory of B and C, and the stream. Here that is CUDA's driver (cuMemAlloc, cuStreamCreate) or,
// where there is no GPU, the C library; any CUDA library's pointers and streams do.
func ExampleBufferAt() {
	ctx := context.Background()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	matrix, err := sparsek.NewMatrix(ctx, engine, a)
	if err != nil {
		log.Fatal(err)
	}
	defer matrix.Close()
	plan, err := matrix.Plan(ctx, sparsek.PlanOptions{N: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()

	other, err := foreign.Open(engine.Info().Backend == sparsek.CUDA, engine.Info().Device)
	if err != nil {
		log.Fatal(err)
	}
	defer other.Close()
	in, err := other.Alloc(12 * 4) // an unsafe.Pointer, as cuMemAlloc gives it
	if err != nil {
		log.Fatal(err)
	}
	defer other.Free(in)
	out, err := other.Alloc(12 * 4)
	if err != nil {
		log.Fatal(err)
	}
	defer other.Free(out)

	from, err := sparsek.BufferAt[float32](engine, in, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer from.Close() // waits for the work on it, and frees nothing
	to, err := sparsek.BufferAt[float32](engine, out, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer to.Close()
	stream, err := engine.StreamAt(other.Stream())
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()

	if err := other.Write(in, b.Data); err != nil {
		log.Fatal(err)
	}
	if err := plan.Enqueue(ctx, stream, 1, 0, sparsek.Operands{
		B: sparsek.DeviceDense[float32]{Rows: 4, Cols: 3, Buffer: from},
		C: sparsek.DeviceDense[float32]{Rows: 4, Cols: 3, Buffer: to},
	}); err != nil {
		log.Fatal(err)
	}
	c := make([]float32, 12)
	if err := other.Read(c, out); err != nil { // behind the product, in the same stream
		log.Fatal(err)
	}
	fmt.Println(c[9:])
	// Output:
	// [7 8 30]
}

// Work is enqueued in a stream, which runs it in this order, and waited for once.
func ExamplePlan_Enqueue() {
	ctx := context.Background()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	matrix, err := sparsek.NewMatrix(ctx, engine, a)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := matrix.Plan(ctx, sparsek.PlanOptions{N: 3})
	if err != nil {
		log.Fatal(err)
	}
	in, err := sparsek.NewBuffer[float32](engine, 12)
	if err != nil {
		log.Fatal(err)
	}
	out, err := sparsek.NewBuffer[float32](engine, 12)
	if err != nil {
		log.Fatal(err)
	}
	stream, err := engine.NewStream()
	if err != nil {
		log.Fatal(err)
	}

	c := make([]float32, 12)
	if err := in.WriteAsync(stream, b.Data); err != nil {
		log.Fatal(err)
	}
	if err := plan.Enqueue(ctx, stream, 1, 0, sparsek.Operands{
		B: sparsek.DeviceDense[float32]{Rows: 4, Cols: 3, Buffer: in},
		C: sparsek.DeviceDense[float32]{Rows: 4, Cols: 3, Buffer: out},
	}); err != nil {
		log.Fatal(err)
	}
	if err := out.ReadAsync(stream, c); err != nil {
		log.Fatal(err)
	}
	if err := stream.Wait(ctx); err != nil { // now c may be read, and b.Data changed
		log.Fatal(err)
	}
	fmt.Println(c[9:])
	// Output:
	// [7 8 30]
}

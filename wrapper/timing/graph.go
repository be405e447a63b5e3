// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"math"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// GraphOptions say what [Graph] times.
type GraphOptions struct {
	Options      // Warmup and Repeats count replays of the graph
	Products int // in the graph
}

// Graph times products without their launches by the host: it captures Products of them into one CUDA graph, product i
// being that of plans[i % len(plans)] with Operands[i % len(Operands)], and replays it. It gives the time of each of the
// last Repeats replays, divided by Products. As with [InTurn], plans of equal matrices keep A cold. The plans are of one
// engine, which must be one of a GPU: on the CPU the error is [sparsek.ErrNoDevice]. It waits for the replays. ctx is
// looked at before they begin.
func Graph(ctx context.Context, plans []*sparsek.Plan, o GraphOptions) ([]time.Duration, error) {
	const op = "time products in a graph"
	use, err := bridge.Begin(ctx, op, plans, o.Operands)
	if err != nil {
		return nil, err
	}
	defer use.End()
	if min(o.Repeats, o.Products) < 1 || max(o.Repeats, o.Products) > math.MaxInt32 || o.Warmup < 0 {
		return nil, fault(op, "%d replays of %d products after %d replays to warm up", o.Repeats, o.Products, o.Warmup)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	graph := native.Graph{Alpha: o.Alpha, Beta: o.Beta, Warmup: o.Warmup, Repeats: o.Repeats}
	t := &turns{use: use}
	for range o.Products {
		p := t.next()
		graph.Plans = append(graph.Plans, uintptr(p.Plan))
		graph.B, graph.C, graph.Bias = append(graph.B, p.B[0]), append(graph.C, p.C[0]), append(graph.Bias, p.Bias[0])
		graph.X = append(graph.X, p.X[0])
	}
	seconds, err := use.Native.GraphTime(graph)
	if err != nil {
		return nil, err
	}
	return durations(seconds), nil
}

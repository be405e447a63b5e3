// SPDX-License-Identifier: Apache-2.0

// Command gcn runs a graph convolutional network of two layers forward on a made-up graph whose degrees follow a power
// law, and says how many nodes it classifies rightly.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/sparsek/sparsek/examples/internal/setup"
)

func main() {
	log.SetFlags(0)
	device := flag.String("device", "auto", setup.DeviceUsage)
	nodes := flag.Int("nodes", 50000, "nodes of the graph")
	cites := flag.Int("edges", 8, "edges of each new node to earlier ones")
	seed := flag.Uint64("seed", 1, "of the graph, the words and the weights")
	repeats := flag.Int("repeats", 20, "times to run the network; the median is shown")
	flag.Parse()
	if *nodes < 1 || *cites < 1 || *repeats < 1 {
		log.Fatal("nodes, edges and repeats are at least 1")
	}
	if _, err := run(context.Background(), *device, newLibrary(*nodes, *cites, *seed), *repeats, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run gives the scores (nodes, classes).
func run(ctx context.Context, device string, l *library, repeats int, out io.Writer) (scores []float32, err error) {
	engine, err := setup.Engine(device)
	if err != nil {
		return nil, err
	}
	var owned closers
	owned.add(engine, nil)
	defer func() { owned.close() }()
	m, err := newModel(ctx, engine, l, &owned)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "graph: %d nodes, %d edges and loops, %d at the busiest node and %d at the median\n", m.nodes, len(l.adjacency.Value),
		slices.Max(l.degree), slices.Sorted(slices.Values(l.degree))[m.nodes/2])
	fmt.Fprintf(out, "features: %d words, %d of each node; network: %d hidden units, %d classes, float32\n", words, wordsPerNode, hidden, classes)
	fmt.Fprintf(out, "products on the %s, kernels %s, %s, %s, %s\n", setup.Device(engine), m.wordsByHidden.Info().Kernel,
		m.mixHidden.Info().Kernel, m.layerByClasses.Info().Kernel, m.mixClasses.Info().Kernel)
	scores = make([]float32, m.nodes*classes)
	times := make([]time.Duration, repeats)
	for i := range times {
		start := time.Now()
		if err := m.forward(ctx, scores); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	fmt.Fprintf(out, "forward: %v\n", times[repeats/2].Round(time.Microsecond))
	fmt.Fprintf(out, "right by the words alone: %.1f %%, by the network: %.1f %%\n", 100*l.byWords(),
		100*l.accuracy(func(i int) float64 { return float64(scores[i]) }))
	return scores, nil
}

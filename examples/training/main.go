// SPDX-License-Identifier: Apache-2.0

// Command training trains a network of two block-sparse layers by gradient descent, on the CPU, and prunes the blocks of
// the smallest norm while it trains.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

func main() {
	log.SetFlags(0)
	c := small()
	flag.IntVar(&c.steps, "steps", c.steps, "steps of gradient descent")
	flag.Float64Var(&c.keep, "keep", c.keep, "share of the blocks that are left in the end")
	flag.Uint64Var(&c.seed, "seed", c.seed, "of the samples and the weights")
	flag.Parse()
	if c.steps < 1 || c.keep <= 0 || c.keep > 1 {
		log.Fatal("steps are at least 1, and keep is above 0 and at most 1")
	}
	if _, err := run[float32](context.Background(), c, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run gives the loss before each step, and after the last.
func run[T float32 | float64](ctx context.Context, c config, out io.Writer) ([]float64, error) {
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{Backend: sparsek.CPU})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	p := newProblem(c)
	n, err := newNetwork[T](ctx, engine, p)
	if err != nil {
		return nil, err
	}
	defer n.close()
	var losses []float64
	for step := range c.steps + 1 {
		loss, err := n.forward(ctx)
		if err != nil {
			return nil, err
		}
		losses = append(losses, loss)
		if step%c.pruneEvery == 0 || step == c.steps {
			fmt.Fprintf(out, "step %4d: loss %.6f, %d and %d blocks\n", step, loss, n.first.blocks(), n.second.blocks())
		}
		if step == c.steps {
			break
		}
		if err := n.backward(ctx); err != nil {
			return nil, err
		}
		if step%c.pruneEvery == c.pruneEvery-1 {
			if err := n.prune(ctx, c.kept(step)); err != nil {
				return nil, err
			}
		}
	}
	return losses, nil
}

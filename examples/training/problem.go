// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
)

// config is what is trained, and how.
type config struct {
	inputs, hidden, outputs int
	samples                 int
	block                   int // of both layers, square
	steps, pruneEvery       int
	rate                    float64
	keep                    float64 // share of the blocks that are left in the end
	seed                    uint64
}

func small() config {
	return config{inputs: 64, hidden: 96, outputs: 32, samples: 200, block: 8, steps: 200, pruneEvery: 25, rate: 0.05, keep: 0.4, seed: 1}
}

// kept is the share of the blocks that are left after a step: fewer by the same number each time.
func (c config) kept(step int) float64 {
	return 1 - (1-c.keep)*float64(step+1)/float64(c.steps)
}

// problem are samples, one in each column, and the weights in the beginning, all row-major.
type problem struct {
	config
	x, target     []float64 // (inputs, samples), (outputs, samples)
	first, second []float64 // (hidden, inputs), (outputs, hidden)
}

// newProblem has targets by another network, of which only some blocks are there.
func newProblem(c config) *problem {
	random := rand.New(rand.NewPCG(c.seed, 0))
	normal := func(count int, scale float64) []float64 {
		values := make([]float64, count)
		for i := range values {
			values[i] = float64(float32(scale * random.NormFloat64())) // the same in each type
		}
		return values
	}
	p := &problem{config: c, x: normal(c.inputs*c.samples, 1),
		first: normal(c.hidden*c.inputs, 1/math.Sqrt(float64(c.inputs))), second: normal(c.outputs*c.hidden, 1/math.Sqrt(float64(c.hidden)))}
	teacher := normal(c.outputs*c.inputs, 1/math.Sqrt(float64(c.inputs)))
	for i := range teacher {
		row, col := i/c.inputs/c.block, i%c.inputs/c.block
		if (row+col)%3 != 0 {
			teacher[i] = 0
		}
	}
	p.target = make([]float64, c.outputs*c.samples)
	for i := range c.outputs {
		for k := range c.inputs {
			for j := range c.samples {
				p.target[i*c.samples+j] += teacher[i*c.inputs+k] * p.x[k*c.samples+j]
			}
		}
	}
	for i, v := range p.target {
		p.target[i] = float64(float32(max(v, 0)))
	}
	return p
}

// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"sync"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// A matrix-vector product, and others whose rows of B are aligned to an element alone, run on tensor cores too; several
// at once on one plan, each with memory of its own for what it copies of B.
func TestRaggedB(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, n := range []int{1, 2, 7, 17, 63, 250} {
		p := newProduct[BFloat16, int32](shape{rows: 500, cols: 700, n: n, blockM: 64, blockK: 64, density: 0.4, alpha: 1, seed: uint64(n)})
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: n, Alignment: 2}))(t)
		if kernel := plan.Info().Kernel; kernel == "simt_bf16" {
			t.Errorf("N = %d runs on %s", n, kernel)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 5 {
					c := p.newC()
					if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
						t.Error(err)
						return
					}
					p.verify(t, engine, plan.Info(), c)
				}
			})
		}
		group.Wait()
		plan.Close()
		m.Close()
	}
}

// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"context"
	"errors"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Launched is a case whose product was launched and not timed: something else measures the launches.
type Launched struct {
	Case     Case
	Plan     sparsek.PlanInfo
	Work     Work
	Launches int // of the product's kernel, the first of which was checked
}

// Launch checks a product of the case and launches it `launches` times more. A, B and C are rotated as in Measure.
func (b *Bench) Launch(ctx context.Context, c Case, launches int) (l *Launched, err error) {
	p, err := c.Generate()
	if err != nil {
		return nil, err
	}
	a := workload.RandomA[element](p, c.M, c.K, c.BlockM, c.BlockK, Seed)
	rotation, err := workload.NewRotation(ctx, b.context, a, workload.RotationOptions{N: c.N, Copies: b.copies(c, len(a.Values))})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rotation.Close()) }()
	if err := workload.CheckSample(ctx, b.context, a, c.N, rotation, b.operands); err != nil {
		return nil, err
	}
	sets := b.operands.Sparse(c.shape())
	for i := 1; i <= launches; i++ {
		if err := rotation.Multiply(ctx, i, sets[i%len(sets)]); err != nil {
			return nil, err
		}
	}
	return &Launched{c, rotation.Info(), WorkOf(c, p, rotation.Info()), 1 + launches}, nil
}

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Launched is a case whose product was launched and not timed: something else measures the launches.
type Launched struct {
	Case     Case
	Plan     sparsek.PlanInfo
	Work     roofline.Work
	Launches int // of the product's kernel, the first of which was checked
}

// Launch checks a product of the case and launches it `launches` times more. A, B and C are rotated as in Measure.
func (r *Runner) Launch(ctx context.Context, c Case, launches int) (*Launched, error) {
	m, err := r.of(ctx, c)
	if err != nil {
		return nil, err
	}
	return m.launch(ctx, c, launches)
}

func (t *typed[T]) launch(ctx context.Context, c Case, launches int) (l *Launched, err error) {
	p, err := t.ready(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.rotation.Close()) }()
	operands := p.operands()
	for i := 1; i <= launches; i++ {
		if err := p.rotation.Multiply(ctx, i, operands[i%len(operands)]); err != nil {
			return nil, err
		}
	}
	return &Launched{c, p.rotation.Info(), t.work(c, p), 1 + launches}, nil
}

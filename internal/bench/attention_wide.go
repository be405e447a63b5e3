// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Wide is ours in bf16, in turn with attention of e4m3.
const Wide = "bf16"

var wideType = workload.BFloat16.Name

// enterWide gives ours in bf16; other peers are compared where Q is of 16 bits.
func (r *Runner) enterWide(ctx context.Context, c Case) ([]entrant, error) {
	for _, name := range r.options.Against {
		r.miss(&missing{name, "it is not compared in " + c.DType, "compare it with the cases of " + wideType}, c.Name)
	}
	m, err := r.ofAttention(wideType)
	if err != nil {
		return nil, err
	}
	t := m.(*attentionOf[sparsek.BFloat16, sparsek.BFloat16, float32])
	run, err := workload.NewAttentionRun[sparsek.BFloat16, sparsek.BFloat16, float32](ctx, r.engine, *c.Attention, "", c.Backward, t.host)
	if err != nil {
		return nil, err
	}
	e := t.ours(c, run)
	e.name, e.close = Wide, run.Close
	if err := run.Compute(ctx); err != nil {
		return nil, errors.Join(err, run.Close())
	}
	if err := tryOnce(ctx, &e, ""); err != nil {
		return nil, errors.Join(err, run.Close())
	}
	return []entrant{e}, nil
}

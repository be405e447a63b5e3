// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"math"

	"github.com/sparsek/sparsek/internal/matrix/rng"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// streamScales follows the streams of products and experts.
const streamScales = 18

// attentionScales are those of Q, K and V of E4M3, one for each batch and head, from 1/2 to 2.
type attentionScales struct {
	host    [3][]float32
	buffers [3]*sparsek.DeviceBuffer[float32]
}

// newAttentionScales makes them in the back-end's memory too.
func newAttentionScales(ctx context.Context, engine *sparsek.Engine, a Attention) (*attentionScales, error) {
	s := &attentionScales{}
	for i, heads := range [3]int{a.HeadsQ, a.HeadsK, a.HeadsK} {
		s.host[i] = make([]float32, a.Batch*heads)
		rng.Fill(s.host[i], rng.Split(rng.Split(a.Seed, streamScales), uint64(i)), func(x float32) float32 { return float32(math.Exp2(float64(x))) })
		var err error
		if s.buffers[i], err = Upload(ctx, engine, s.host[i]); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// give gives operands the scales of all heads in the back-end's memory; a nil s has none.
func (s *attentionScales) give(a Attention, o *sparsek.AttentionOperands) {
	if s == nil {
		return
	}
	of := func(i, heads int) sparsek.Heads[float32] {
		return sparsek.Heads[float32]{Batch: a.Batch, Heads: heads, Rows: 1, Size: 1, Buffer: s.buffers[i]}
	}
	o.ScaleQ, o.ScaleK, o.ScaleV = of(0, a.HeadsQ), of(1, a.HeadsK), of(2, a.HeadsK)
}

// giveHost does so on the host.
func (s *attentionScales) giveHost(a Attention, o *sparsek.AttentionOperands) {
	if s == nil {
		return
	}
	of := func(i, heads int) sparsek.Heads[float32] {
		return sparsek.Heads[float32]{Batch: a.Batch, Heads: heads, Rows: 1, Size: 1, Data: s.host[i]}
	}
	o.ScaleQ, o.ScaleK, o.ScaleV = of(0, a.HeadsQ), of(1, a.HeadsK), of(2, a.HeadsK)
}

// giveOne gives, on the host, those of one head of Q and one of K, which count over all batches.
func (s *attentionScales) giveOne(headQ, headK int, o *sparsek.AttentionOperands) {
	if s == nil {
		return
	}
	of := func(i, head int) sparsek.Heads[float32] {
		return sparsek.Heads[float32]{Batch: 1, Heads: 1, Rows: 1, Size: 1, Data: s.host[i], Offset: head}
	}
	o.ScaleQ, o.ScaleK, o.ScaleV = of(0, headQ), of(1, headK), of(2, headK)
}

func (s *attentionScales) close() error {
	var all []error
	for i := range s.buffers {
		if s.buffers[i] != nil {
			all = append(all, s.buffers[i].Close())
		}
	}
	return errors.Join(all...)
}

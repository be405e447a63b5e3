// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"time"

	"github.com/sparsek/sparsek/internal/bench/blas"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// openBLAS is the dense product of the full size, by OpenBLAS's sgemm.
type openBLAS[T sparsek.Element] struct{}

func (openBLAS[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	f, ok := any(s).(*subject[float32])
	switch {
	case s.context.Info().Backend != sparsek.CPU:
		return nil, &missing{OpenBLAS, "it computes on the CPU, and this is a GPU", "--device cpu, or compare with " + CUBLAS}
	case !ok:
		return nil, &missing{OpenBLAS, "its sgemm takes fp32 alone", "time products of fp32"}
	case !s.dense:
		return nil, tooLarge(OpenBLAS)
	}
	const mend = "install OpenBLAS from the system's packages"
	l, err := blas.Open(s.context.Info().Threads)
	if errors.Is(err, blas.ErrNotInstalled) {
		return nil, &missing{OpenBLAS, err.Error(), mend}
	}
	if err != nil {
		return nil, err
	}
	c := make([]float32, f.shape.M*f.shape.N)
	turn := 0
	e := entrant{name: OpenBLAS, kernel: l.Config(), dense: true, time: func(ctx context.Context, repeats int) (times []time.Duration, err error) {
		for range repeats {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			a, b := f.sets.HostA(turn, f.shape), f.sets.HostB(turn, f.shape)
			turn++
			start := time.Now()
			if err := l.Sgemm(f.shape.M, f.shape.N, f.shape.K, a, b, c); err != nil {
				return nil, err
			}
			times = append(times, time.Since(start))
		}
		return times, nil
	}}
	if err := tryOnce(ctx, &e, mend); err != nil {
		return nil, err
	}
	return []entrant{e}, nil
}

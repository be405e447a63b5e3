// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/blas"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// openBLAS is the dense product of the same matrix with its zeros, by OpenBLAS's sgemm.
type openBLAS[T sparsek.Element] struct{}

func (openBLAS[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	f, ok := any(s).(*subject[float32])
	switch {
	case s.engine.Info().Backend != sparsek.CPU:
		return nil, &missing{OpenBLAS, "it computes on the CPU, and this is a GPU", "choose --device cpu, or compare with " + CUBLAS}
	case !ok:
		return nil, &missing{OpenBLAS, "its sgemm takes fp32 alone", "choose --dtype fp32"}
	case !s.dense:
		return nil, tooLarge(OpenBLAS)
	}
	const fix = "install OpenBLAS, as by: apt install libopenblas0"
	l, err := blas.Open(s.engine.Info().Threads)
	if errors.Is(err, blas.ErrNotInstalled) {
		return nil, &missing{OpenBLAS, err.Error(), fix}
	}
	if err != nil {
		return nil, err
	}
	dense, c := expand(f.a), make([]float32, f.shape.M*f.shape.N)
	turn := 0
	multiply := func(ctx context.Context) error {
		turn++
		if err := ctx.Err(); err != nil {
			return err
		}
		return l.Sgemm(f.shape.M, f.shape.N, f.shape.K, dense, f.sets.HostB(turn, f.shape), c)
	}
	e := onHost(multiply)
	e.name, e.kernel, e.dense = OpenBLAS, fmt.Sprintf("%s, %d threads", l.Config(), s.engine.Info().Threads), true
	if err := tryOnce(ctx, &e, fix); err != nil {
		return nil, err
	}
	return []entrant{e}, nil
}

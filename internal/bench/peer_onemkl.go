// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sparsek/sparsek/internal/bench/onemkl"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// oneMKL is the product of the same matrix by oneMKL's sparse BLAS, as BSR and as CSR, each analysed for very many
// products.
type oneMKL[T sparsek.Element] struct{}

const fixOneMKL = "choose square blocks that divide the matrix, and fewer than 2^31 values"

func (oneMKL[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	if s.engine.Info().Backend != sparsek.CPU {
		return nil, &missing{OneMKL, "it computes on the CPU, and this is a GPU", "choose --device cpu, or compare with " + CUSPARSE}
	}
	switch s := any(s).(type) {
	case *subject[float32]:
		return enterOneMKL(ctx, s)
	case *subject[float64]:
		return enterOneMKL(ctx, s)
	}
	return nil, &missing{OneMKL, "its sparse products take fp32 and fp64", "choose --dtype fp32 or fp64"}
}

func enterOneMKL[T float32 | float64](ctx context.Context, s *subject[T]) (list []entrant, err error) {
	threads := s.engine.Info().Threads
	l, err := onemkl.Open(threads)
	if errors.Is(err, onemkl.ErrNotInstalled) {
		return nil, &missing{OneMKL, err.Error(), "install oneMKL, as by: pip install mkl"}
	}
	if err != nil {
		return nil, err
	}
	var absent error
	for _, format := range []struct {
		name    string
		blocked bool
	}{{"onemkl_bsr", true}, {"onemkl_csr", false}} {
		if format.blocked && s.a.BlockM*s.a.BlockK == 1 {
			continue // it is the same as CSR
		}
		m, err := onemkl.NewMatrix(l, s.a, format.blocked, s.shape.N)
		if err != nil {
			absent = errors.Join(absent, &missing{format.name, err.Error(), fixOneMKL})
			continue
		}
		if err := checkOneMKL(s, m); err != nil {
			absent = errors.Join(absent, &missing{format.name, err.Error(), fixOneMKL}, m.Close())
			continue
		}
		e := oneMKLEntrant(s, m)
		e.name, e.kernel = format.name, fmt.Sprintf("%s, %d threads", l.Version(), threads)
		if err := tryOnce(ctx, &e, fixOneMKL); err != nil {
			absent = errors.Join(absent, err)
			continue
		}
		list = append(list, e)
	}
	return list, absent
}

func oneMKLEntrant[T float32 | float64](s *subject[T], m *onemkl.Matrix) entrant {
	c, turn := make([]T, s.shape.M*s.shape.N), 0
	multiply := func(ctx context.Context) error {
		turn++
		if err := ctx.Err(); err != nil {
			return err
		}
		return onemkl.Multiply(m, s.sets.HostB(turn, s.shape), c)
	}
	e := onHost(multiply)
	e.close = m.Close
	return e
}

// checkOneMKL compares the first block row that has blocks with sums in float64.
func checkOneMKL[T float32 | float64](s *subject[T], m *onemkl.Matrix) error {
	a, b, n := s.a, s.sets.HostB(0, s.shape), s.shape.N
	c := make([]T, s.shape.M*n)
	if err := onemkl.Multiply(m, b, c); err != nil {
		return err
	}
	first := 0
	for first < a.BlockRows && a.RowPtr[first] == a.RowPtr[first+1] {
		first++
	}
	if first == a.BlockRows {
		return nil
	}
	for row := first * a.BlockM; row < min((first+1)*a.BlockM, a.Rows); row++ {
		for col := range n {
			sum, magnitude := 0.0, 0.0
			for e := a.RowPtr[first]; e < a.RowPtr[first+1]; e++ {
				k := int(a.ColIdx[e]) * a.BlockK
				for j := range min(a.BlockK, a.Cols-k) {
					product := float64(a.Values[(int(e)*a.BlockM+row-first*a.BlockM)*a.BlockK+j]) * float64(b[(k+j)*n+col])
					sum, magnitude = sum+product, magnitude+math.Abs(product)
				}
			}
			if err := math.Abs(float64(c[row*n+col]) - sum); !(err <= 1e-4*magnitude) {
				return fmt.Errorf("a wrong result: C is off by %.3g at row %d, column %d", err, row, col)
			}
		}
	}
	return nil
}

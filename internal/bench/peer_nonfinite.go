// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"math"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// nonFinite is ours again with other B's, that hold Inf or NaN: absent blocks take no part in a product, and a kernel
// that multiplies them as zeros must do more to keep these out of C.
type nonFinite[T sparsek.Element] struct{}

// infEvery is the distance of the columns with an Inf: those of a tile of the kernels for wide B's.
const infEvery = 256

func (nonFinite[T]) enter(ctx context.Context, s *subject[T]) (list []entrant, err error) {
	for _, one := range []struct {
		name, about string
		change      func(b []T)
	}{
		{"one_inf", "one Inf in each 256 columns of B", func(b []T) {
			row := b[s.shape.K/2*s.shape.N:]
			for col := 0; col < s.shape.N; col += infEvery {
				row[col] = sparsek.FromFloat32[T](float32(math.Inf(1)))
			}
		}},
		{"all_nan", "B of NaN", func(b []T) {
			for i := range b {
				b[i] = sparsek.FromFloat32[T](float32(math.NaN()))
			}
		}},
	} {
		e, err := s.withOtherB(ctx, one.change)
		if err != nil {
			return list, err
		}
		e.name, e.kernel = one.name, e.kernel+", "+one.about
		list = append(list, e)
	}
	return list, nil
}

// withOtherB is ours with B's in which something was changed.
func (s *subject[T]) withOtherB(ctx context.Context, change func(b []T)) (entrant, error) {
	sets, err := s.sets.WithOtherB(ctx, s.engine, s.shape, change)
	if err != nil {
		return entrant{}, err
	}
	rotation, err := workload.NewRotation(ctx, s.engine, s.a, workload.RotationOptions{N: s.shape.N, Form: s.form, Copies: s.copies})
	if err != nil {
		return entrant{}, errors.Join(err, sets.CloseB())
	}
	other := *s
	other.sets = sets
	e := byRotation(&other, rotation, "")
	e.run = nil
	e.close = func() error { return errors.Join(rotation.Close(), sets.CloseB()) }
	return e, tryOnce(ctx, &e, "")
}

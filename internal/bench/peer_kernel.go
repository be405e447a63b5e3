// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// byKernel is a library that libsparsek offers as kernels of its own, which plans take by name.
type byKernel[T sparsek.Element] struct {
	library string
	kernels []string
}

func (p byKernel[T]) enter(ctx context.Context, s *subject[T]) (list []entrant, err error) {
	for _, kernel := range p.kernels {
		one, failed := p.enterOne(ctx, s, kernel, s.copies)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		list = append(list, one)
	}
	return list, err
}

// enterOne gets one of the kernels ready, with so many copies of A.
func (p byKernel[T]) enterOne(ctx context.Context, s *subject[T], kernel string, copies int) (entrant, error) {
	rotation, err := workload.NewRotation(ctx, s.engine, s.a, workload.RotationOptions{N: s.shape.N, Form: s.form, Copies: copies, Kernel: kernel, AllowDense: true})
	if err != nil {
		if fatal(ctx, err) {
			return entrant{}, err
		}
		return entrant{}, p.missing(s.engine.Library(), kernel, err)
	}
	e := byRotation(s, rotation, kernel)
	e.close = rotation.Close
	if err := workload.CheckSample(ctx, s.engine, s.a, rotation, s.sets); err != nil {
		err = errors.Join(err, rotation.Close())
		if errors.Is(err, workload.ErrWrong) {
			return entrant{}, &missing{kernel, err.Error(), "leave it out: its time would say nothing"}
		}
		return entrant{}, err
	}
	return e, tryOnce(ctx, &e, "")
}

// missing distinguishes a kernel that this libsparsek does not have from one that cannot compute the product.
func (p byKernel[T]) missing(lib *sparsek.Library, kernel string, cause error) error {
	kernels, err := lib.Kernels()
	if err != nil {
		return err
	}
	there := slices.ContainsFunc(kernels, func(k sparsek.Kernel) bool { return k.Name == kernel })
	switch {
	case !there:
		return &missing{kernel, "this libsparsek has no kernel of that name", "take a libsparsek that offers " + p.library + ": sparsek info lists its kernels"}
	case errors.Is(cause, sparsek.ErrNoLibrary):
		return &missing{kernel, cause.Error(), "install " + p.library + ": sparsek doctor says more"}
	}
	return &missing{kernel, cause.Error(), "choose blocks, sizes and a type that it takes"}
}

// byRotation is an entrant whose products are those of a rotation, launched one by one: each timed one is behind others
// that keep the device busy.
func byRotation[T sparsek.Element](s *subject[T], rotation *workload.Rotation[T], name string) entrant {
	operands := s.operands()
	onCPU := s.engine.Info().Backend == sparsek.CPU
	between := rotation.Copies()
	if onCPU {
		between = 1 // a CPU starts each product at once: one warms it up
	}
	return entrant{name: name, kernel: rotation.Info().Kernel,
		time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
			times, err := rotation.Time(ctx, operands, between, repeats)
			switch {
			case err != nil:
			case onCPU && times[0] > long:
				between = 0
			case !onCPU && times[0] < short:
				between = max(between, shortBefore)
			}
			return times, err
		},
		run: func(ctx context.Context, count int) (int, error) {
			_, err := rotation.Time(ctx, operands, count-1, 1)
			return count, err
		}}
}

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
		one, failed := p.enterOne(ctx, s, kernel)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		list = append(list, one)
	}
	return list, err
}

func (p byKernel[T]) enterOne(ctx context.Context, s *subject[T], kernel string) (entrant, error) {
	rotation, err := workload.NewRotation(ctx, s.context, s.a, workload.RotationOptions{N: s.shape.N, Copies: s.copies, Kernel: kernel, AllowDense: true})
	if err != nil {
		if fatal(ctx, err) {
			return entrant{}, err
		}
		return entrant{}, p.missing(s.context.Library(), kernel, err)
	}
	e := entrant{name: kernel, kernel: rotation.Info().Kernel, close: rotation.Close, time: timeRotation(s, rotation)}
	if err := workload.CheckSample(ctx, s.context, s.a, s.shape.N, rotation, s.sets); err != nil {
		err = errors.Join(err, rotation.Close())
		if errors.Is(err, workload.ErrWrong) {
			return entrant{}, &missing{kernel, err.Error(), "its time would say nothing"}
		}
		return entrant{}, err
	}
	return e, tryOnce(ctx, &e, "")
}

// missing tells a kernel that this libsparsek does not have from one that cannot compute the product.
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

const (
	// Products that take less than this are enqueued hardly faster than they run: more of them go before a timed one.
	short       = 50 * time.Microsecond
	shortBefore = 12
	// Products that take more than this on the CPU need no warm-up each time.
	long = 10 * time.Millisecond
)

// timeRotation times launched products of a rotation, each behind others that keep the device busy.
func timeRotation[T sparsek.Element](s *subject[T], rotation *workload.Rotation[T]) func(context.Context, int) ([]time.Duration, error) {
	operands := s.sets.Sparse(s.shape)
	onCPU := s.context.Info().Backend == sparsek.CPU
	between := rotation.Copies()
	if onCPU {
		between = 1 // a CPU starts each product at once: one warms it up
	}
	return func(ctx context.Context, repeats int) ([]time.Duration, error) {
		times, err := rotation.Time(ctx, operands, between, repeats)
		switch {
		case err != nil:
		case onCPU && times[0] > long:
			between = 0
		case !onCPU && times[0] < short:
			between = max(between, shortBefore)
		}
		return times, err
	}
}

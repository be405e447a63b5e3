// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	"github.com/sparsek/sparsek/internal/sys/stats"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// How often a plan is made, after the first, which has the driver load the kernels.
const (
	fewestPlans, mostPlans = 5, 31
	plansTake              = 30 * time.Millisecond // beyond the fewest, none is made once this time is over
)

// enoughPlans reports whether these times are of enough plans.
func enoughPlans(times []time.Duration) bool {
	if len(times) < 1+fewestPlans {
		return false
	}
	var sum time.Duration
	for _, t := range times[1:] {
		sum += t
	}
	return len(times) > mostPlans || sum >= plansTake
}

// HostPlanTime is the median of the wall-clock times that plans of products of a of that form take for n, each the first of
// its matrix.
func HostPlanTime[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], f Form, n int) (median time.Duration, err error) {
	a.Values = nil
	p := Problem[T]{A: a}
	var times []time.Duration
	for !enoughPlans(times) {
		m, err := p.Matrix(ctx, engine)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		plan, err := m.Plan(ctx, f.planOptions(n))
		times = append(times, time.Since(start))
		if err == nil {
			err = plan.Close()
		}
		if err := errors.Join(err, m.Close()); err != nil {
			return 0, err
		}
	}
	return stats.Median(times[1:]), nil
}

// DevicePlanTime is the median of the wall-clock times that plans of products of a of that form take for n where a's index
// is in device memory: c must be a GPU's.
func DevicePlanTime[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], f Form, n int) (median time.Duration, err error) {
	rowPtr, err := Upload(ctx, engine, a.RowPtr)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rowPtr.Close()) }()
	colIdx, err := Upload(ctx, engine, a.ColIdx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, colIdx.Close()) }()
	m, err := sparsek.NewDeviceMatrix(ctx, engine, sparsek.DeviceBSR[T, int32]{
		Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: rowPtr, ColIdx: colIdx,
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	var times []time.Duration
	for !enoughPlans(times) {
		start := time.Now()
		plan, err := m.Plan(ctx, f.planOptions(n))
		if err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
		if err := plan.Close(); err != nil {
			return 0, err
		}
	}
	return stats.Median(times[1:]), nil
}

// Upload copies data into a buffer of the engine.
func Upload[T sparsek.Element | sparsek.Index](ctx context.Context, engine *sparsek.Engine, data []T) (*sparsek.DeviceBuffer[T], error) {
	buffer, err := sparsek.NewBuffer[T](engine, len(data))
	if err != nil {
		return nil, err
	}
	if err := buffer.Write(ctx, data); err != nil {
		return nil, errors.Join(err, buffer.Close())
	}
	return buffer, nil
}

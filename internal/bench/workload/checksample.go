// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// ErrWrong is what CheckSample returns, wrapped, where a product is wrong: its time would say nothing.
var ErrWrong = errors.New("wrong result")

// CheckSample is CheckPlan of the first plan of a rotation.
func CheckSample[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], rotation *Rotation[T], o *Sets[T]) error {
	return CheckPlan(ctx, engine, a, rotation.form, rotation.n, rotation.plans[0], o)
}

// CheckPlan runs one product of a with the first of the operands and makes sure that every element was written, that
// none was computed again and that what the first, the middle and the last block row of op(A) give is what it should be. A
// must be finite.
func CheckPlan[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], f Form, n int, plan *sparsek.Plan, o *Sets[T]) error {
	const nan = 0xff // in every byte
	shape := Shape{a.Rows, n, a.Cols}
	if err := o.sets[0].c.Fill(ctx, nan); err != nil {
		return err
	}
	if err := plan.Multiply(ctx, 1, 0, o.Sparse(shape, f, a)[0]); err != nil {
		return err
	}
	extent := f.ExtentC(shape, len(a.Values), a.BlockK)
	result := o.result[:extent.elements()]
	if err := o.sets[0].c.Read(ctx, result); err != nil {
		return err
	}
	kernel := plan.Info().Kernel
	if i := firstNaN(result); i >= 0 {
		row, col := i/extent.Cols, i%extent.Cols
		if f.OrderC == sparsek.ColumnMajor {
			row, col = i%extent.Rows, i/extent.Rows
		}
		return fmt.Errorf("%w by %s: C[%d, %d] is NaN or was not written", ErrWrong, kernel, row, col)
	}
	again, err := plan.Recomputed(ctx)
	if err != nil {
		return err
	}
	if again > 0 { // of finite operands
		return fmt.Errorf("%w by %s: sums were NaN, and %d slabs of C were computed again", ErrWrong, kernel, again)
	}
	count := parts(f, a)
	if count == 0 {
		return nil
	}
	host := onHost[T]{shape: shape, x: o.hostA(0)[:f.ExtentX(shape).elements()], b: o.hostB(0)[:f.ExtentB(shape).elements()], c: result}
	for _, r := range []int{0, count / 2, count - 1} {
		report, err := checkPart(engine.Library(), a, f, host, r, plan.Info().UnitRoundoff)
		if errors.Is(err, sparsek.ErrCheckFailed) {
			return fmt.Errorf("%w by %s: block row %d of op(A) has %d elements beyond their bound, the first at [%d, %d] of what it gives", ErrWrong,
				kernel, r, report.Failures, report.FirstRow, report.FirstCol)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

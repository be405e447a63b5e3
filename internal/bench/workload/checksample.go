// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// ErrWrong is what CheckSample returns, wrapped, where a product is wrong: its time would say nothing.
var ErrWrong = errors.New("wrong result")

// CheckSample is CheckPlan of the first plan of a rotation.
func CheckSample[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], n int, rotation *Rotation[T], o *Sets[T]) error {
	return CheckPlan(ctx, engine, a, n, rotation.plans[0], o)
}

// CheckPlan runs one product of a with the first of the operands and makes sure that every element was written, that
// none was computed again and that the first, the middle and the last block row hold what they should. A must be finite.
func CheckPlan[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], n int, plan *sparsek.Plan, o *Sets[T]) error {
	const nan = 0xff // in every byte
	shape := Shape{a.Rows, n, a.Cols}
	if err := o.sets[0].c.Fill(ctx, nan); err != nil {
		return err
	}
	if err := plan.Multiply(ctx, 1, 0, o.Sparse(shape)[0]); err != nil {
		return err
	}
	out := matio.Dense[T]{Rows: a.Rows, Cols: n, Data: o.result[:a.Rows*n]}
	if err := o.sets[0].c.Read(ctx, out.Data); err != nil {
		return err
	}
	kernel := plan.Info().Kernel
	if i := firstNaN(out.Data); i >= 0 {
		return fmt.Errorf("%w by %s: C[%d, %d] is NaN or was not written", ErrWrong, kernel, i/n, i%n)
	}
	again, err := plan.Recomputed(ctx)
	if err != nil {
		return err
	}
	if again > 0 { // of finite operands
		return fmt.Errorf("%w by %s: sums were NaN, and %d slabs of C were computed again", ErrWrong, kernel, again)
	}
	if a.BlockRows == 0 {
		return nil
	}
	right := matio.Dense[T]{Rows: a.Cols, Cols: n, Data: o.HostB(0, shape)}
	for _, r := range []int{0, a.BlockRows / 2, a.BlockRows - 1} {
		report, err := CheckBlockRow(engine.Library(), a, right, out, r, plan.Info().UnitRoundoff)
		if errors.Is(err, sparsek.ErrCheckFailed) {
			return fmt.Errorf("%w by %s: block row %d has %d elements beyond their bound, the first at C[%d, %d]", ErrWrong,
				kernel, r, report.Failures, r*a.BlockM+report.FirstRow, report.FirstCol)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

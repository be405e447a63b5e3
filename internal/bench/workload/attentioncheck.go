// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sync/errgroup"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

func sizeOf[T any]() int {
	var one T
	return int(unsafe.Sizeof(one))
}

// AttentionChecked is the report of an output.
type AttentionChecked struct {
	Output check.AttentionOutput
	check.Report
}

// attentionResult are operands and results of a call on the host.
type attentionResult[T, O, S sparsek.Element] struct {
	gradQ, gradK, gradV []T
	o                   []O
	lse                 []S
}

// read brings what Compute wrote to the host.
func (r *AttentionRun[T, O, S]) read(ctx context.Context) (*attentionResult[T, O, S], error) {
	s, out := &r.sets[0], &attentionResult[T, O, S]{o: make([]O, r.queries()), lse: make([]S, r.queries()/r.HeadSize)}
	if err := errors.Join(s.o.Read(ctx, out.o), s.lse.Read(ctx, out.lse)); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		from     *sparsek.DeviceBuffer[T]
		to       *[]T
		elements int
	}{{s.gradQ, &out.gradQ, r.queries()}, {s.gradK, &out.gradK, r.keys()}, {s.gradV, &out.gradV, r.keys()}} {
		if one.from == nil {
			continue
		}
		*one.to = make([]T, one.elements)
		if err := one.from.Read(ctx, *one.to); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Outputs are those of the passes that Compute runs.
func (r *AttentionRun[T, O, S]) Outputs() []check.AttentionOutput {
	if r.backward {
		return []check.AttentionOutput{check.O, check.LSE, check.GradQ, check.GradK, check.GradV}
	}
	return []check.AttentionOutput{check.O, check.LSE}
}

// Check compares every element that Compute wrote with a float64 reference; see package check. An error is why that could not
// be done: elements beyond their bounds are in the reports.
func (r *AttentionRun[T, O, S]) Check(ctx context.Context) ([]AttentionChecked, error) {
	result, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	var list []AttentionChecked
	for _, output := range r.Outputs() {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		report, err := r.compare(output, r.whole(result), r.layout, r.options())
		if err != nil {
			return list, err
		}
		list = append(list, AttentionChecked{output, report})
	}
	return list, nil
}

// whole are the operands of a call on the host.
func (r *AttentionRun[T, O, S]) whole(result *attentionResult[T, O, S]) sparsek.AttentionOperands {
	heads := func(count int, data []T) sparsek.HeadsOperand {
		if data == nil {
			return nil
		}
		return sparsek.Heads[T]{Batch: r.Batch, Heads: count, Rows: r.Seq, Size: r.HeadSize, Data: data}
	}
	o := sparsek.AttentionOperands{Q: heads(r.HeadsQ, r.hostQ()), K: heads(r.HeadsK, r.hostK()), V: heads(r.HeadsK, r.hostV()),
		O:     sparsek.Heads[O]{Batch: r.Batch, Heads: r.HeadsQ, Rows: r.Seq, Size: r.HeadSize, Data: result.o},
		LSE:   sparsek.Heads[S]{Batch: r.Batch, Heads: r.HeadsQ, Rows: r.Seq, Size: 1, Data: result.lse},
		GradQ: heads(r.HeadsQ, result.gradQ), GradK: heads(r.HeadsK, result.gradK), GradV: heads(r.HeadsK, result.gradV)}
	r.scales.giveHost(r.Attention, &o)
	if r.backward {
		o.GradO = heads(r.HeadsQ, r.hostGradO())
	}
	return o
}

func (r *AttentionRun[T, O, S]) compare(output check.AttentionOutput, o sparsek.AttentionOperands, layout *sparsek.BSR[T, int32], options sparsek.AttentionOptions) (check.Report, error) {
	report, err := check.Attention(r.engine.Library(), layout, check.AttentionArgs{Options: options, Operands: o, Info: r.Info(), Output: output,
		Threads: r.engine.Info().Threads})
	if errors.Is(err, sparsek.ErrCheckFailed) {
		err = nil
	}
	return report, err
}

// wholeCheck is up to how many operations of a forward pass every element is compared: a second or two of a CPU.
const wholeCheck = 1e9

// CheckSample makes sure that Compute wrote every element, and that those of the first, the middle and the last queries, and of
// gradients of K and V keys, are what they should be; all of them where that takes a moment.
func (r *AttentionRun[T, O, S]) CheckSample(ctx context.Context) error {
	result, err := r.read(ctx)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		output check.AttentionOutput
		data   []T
	}{{check.GradQ, result.gradQ}, {check.GradK, result.gradK}, {check.GradV, result.gradV}} {
		if i := firstNaN(one.data); i >= 0 {
			return fmt.Errorf("%w by %s: element %d of %v is NaN or was not written", ErrWrong, r.kernel(one.output), i, one.output)
		}
	}
	if i := firstNaN(result.o); i >= 0 {
		return fmt.Errorf("%w by %s: element %d of %v is NaN or was not written", ErrWrong, r.kernel(check.O), i, check.O)
	}
	if i := firstNaN(result.lse); i >= 0 {
		return fmt.Errorf("%w by %s: LSE of query %d is NaN or was not written", ErrWrong, r.kernel(check.LSE), i)
	}
	if r.FLOP(float64(r.Info().Pairs), false) <= wholeCheck {
		list, err := r.Check(ctx)
		for _, one := range list {
			err = errors.Join(err, r.verdict(one, "all queries"))
		}
		return err
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0)) // a part is one head, which the check does in one thread
	for _, i := range sample(r.queryParts()) {
		group.Go(func() error { return r.checkPart(ctx, r.queryPart(result, i)) })
	}
	if r.backward {
		for _, i := range sample(r.keyParts()) {
			group.Go(func() error { return r.checkPart(ctx, r.keyPart(result, i)) })
		}
	}
	return group.Wait()
}

func (r *AttentionRun[T, O, S]) kernel(output check.AttentionOutput) string {
	if output >= check.GradQ {
		return r.Info().Backward
	}
	return r.Info().Kernel
}

// verdict is an error where elements are beyond their bounds.
func (r *AttentionRun[T, O, S]) verdict(one AttentionChecked, where string) error {
	if one.Failures == 0 {
		return nil
	}
	return fmt.Errorf("%w by %s: %v of %s has %d elements beyond their bound, the first at [%d, %d]", ErrWrong, r.kernel(one.Output), one.Output, where,
		one.Failures, one.FirstRow, one.FirstCol)
}

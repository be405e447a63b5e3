// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// attentionPart is what some neighbouring queries of a head have, or some neighbouring keys: attention of their own, whose
// place is shifted against that of the keys, or of the queries.
type attentionPart[T sparsek.Element] struct {
	options  sparsek.AttentionOptions
	layout   *sparsek.BSR[T, int32] // nil: every block
	operands sparsek.AttentionOperands
	outputs  []check.AttentionOutput
	where    string
}

// sample are the first, the middle and the last of so many parts.
func sample(parts int) []int {
	together := min(parts, 4)
	var list []int
	for _, first := range []int{0, (parts - together) / 2, parts - together} {
		for part := first; part < first+together; part++ {
			if !slices.Contains(list, part) {
				list = append(list, part)
			}
		}
	}
	return list
}

// partRows is how many queries or keys a part has; they are of one block.
func partRows(block int) int {
	const few = 16
	if block%few != 0 {
		return block
	}
	return few
}

// queryParts and keyParts are how many parts there are, over all batches and heads.
func (r *AttentionRun[T, O, S]) queryParts() int {
	return r.Batch * r.HeadsQ * blocksIn(r.Seq, partRows(r.BlockQ))
}

func (r *AttentionRun[T, O, S]) keyParts() int {
	return r.Batch * r.HeadsK * blocksIn(r.Seq, partRows(r.BlockK))
}

// heads are some rows of some neighbouring heads, which count over all batches: one part of one head, or whole ones.
func (r *AttentionRun[T, O, S]) heads(data []T, head, count, begin, rows int) sparsek.Heads[T] {
	return sparsek.Heads[T]{Batch: 1, Heads: count, Rows: rows, Size: r.HeadSize, Data: data, Offset: (head*r.Seq + begin) * r.HeadSize}
}

// headsO are those of O.
func (r *AttentionRun[T, O, S]) headsO(data []O, head, count, begin, rows int) sparsek.Heads[O] {
	return sparsek.Heads[O]{Batch: 1, Heads: count, Rows: rows, Size: r.HeadSize, Data: data, Offset: (head*r.Seq + begin) * r.HeadSize}
}

// queryPart is that of some queries, with all keys of their head.
func (r *AttentionRun[T, O, S]) queryPart(result *attentionResult[T, O, S], i int) attentionPart[T] {
	inHead := blocksIn(r.Seq, partRows(r.BlockQ))
	head, begin := i/inHead, i%inHead*partRows(r.BlockQ)
	rows := min(partRows(r.BlockQ), r.Seq-begin)
	headK := head / (r.HeadsQ / r.HeadsK)
	query := func(data []T) sparsek.Heads[T] { return r.heads(data, head, 1, begin, rows) }
	key := func(data []T) sparsek.Heads[T] { return r.heads(data, headK, 1, 0, r.Seq) }
	p := attentionPart[T]{options: r.shifted(begin), outputs: []check.AttentionOutput{check.O, check.LSE},
		operands: sparsek.AttentionOperands{Q: query(r.hostQ()), K: key(r.hostK()), V: key(r.hostV()), O: r.headsO(result.o, head, 1, begin, rows),
			LSE: sparsek.Heads[S]{Batch: 1, Heads: 1, Rows: rows, Size: 1, Data: result.lse, Offset: head*r.Seq + begin}},
		where: fmt.Sprintf("queries %d to %d of head %d", begin, begin+rows-1, head)}
	r.scales.giveOne(head, headK, &p.operands)
	p.options.HeadsQ, p.options.SeqQ = 1, rows
	if r.backward {
		p.operands.GradO, p.operands.GradQ = query(r.hostGradO()), query(result.gradQ)
		p.outputs = append(p.outputs, check.GradQ)
	}
	if r.layout != nil {
		columns := r.columns(head, begin/r.BlockQ)
		p.layout = &sparsek.BSR[T, int32]{Rows: rows, Cols: r.Seq, BlockM: rows, BlockK: r.BlockK, RowPtr: []int32{0, int32(len(columns))}, ColIdx: columns}
	}
	return p
}

// keyPart is that of some keys, with all queries of the heads that share them.
func (r *AttentionRun[T, O, S]) keyPart(result *attentionResult[T, O, S], i int) attentionPart[T] {
	inHead := blocksIn(r.Seq, partRows(r.BlockK))
	headK, begin := i/inHead, i%inHead*partRows(r.BlockK)
	rows := min(partRows(r.BlockK), r.Seq-begin)
	group := r.HeadsQ / r.HeadsK
	query := func(data []T) sparsek.Heads[T] { return r.heads(data, headK*group, group, 0, r.Seq) }
	key := func(data []T) sparsek.Heads[T] { return r.heads(data, headK, 1, begin, rows) }
	p := attentionPart[T]{options: r.shifted(-begin), outputs: []check.AttentionOutput{check.GradK, check.GradV},
		operands: sparsek.AttentionOperands{Q: query(r.hostQ()), K: key(r.hostK()), V: key(r.hostV()), O: r.headsO(result.o, headK*group, group, 0, r.Seq), GradO: query(r.hostGradO()),
			LSE:   sparsek.Heads[S]{Batch: 1, Heads: group, Rows: r.Seq, Size: 1, Data: result.lse, Offset: headK * group * r.Seq},
			GradK: key(result.gradK), GradV: key(result.gradV)},
		where: fmt.Sprintf("keys %d to %d of head %d", begin, begin+rows-1, headK)}
	p.options.HeadsQ, p.options.SeqK = group, rows
	if r.layout != nil {
		blocks := blocksIn(r.Seq, r.BlockQ)
		p.options.LayoutHeads = group
		p.layout = &sparsek.BSR[T, int32]{Rows: group * blocks * r.BlockQ, Cols: rows, BlockM: r.BlockQ, BlockK: rows, RowPtr: []int32{0}}
		for row := range group * blocks {
			if _, listed := slices.BinarySearch(r.columns(headK*group+row/blocks, row%blocks), int32(begin/r.BlockK)); listed {
				p.layout.ColIdx = append(p.layout.ColIdx, 0)
			}
			p.layout.RowPtr = append(p.layout.RowPtr, int32(len(p.layout.ColIdx)))
		}
	}
	return p
}

// shifted are the options of one head of keys, with queries that are so much later.
func (r *AttentionRun[T, O, S]) shifted(by int) sparsek.AttentionOptions {
	o := r.options()
	if o.Causal {
		o.Causal, o.WindowRight = false, new(0)
	}
	o.Batch, o.HeadsK, o.LayoutHeads = 1, 1, 0
	if o.WindowRight != nil {
		o.WindowRight = new(*o.WindowRight + by)
	}
	if o.WindowLeft != nil {
		o.WindowLeft = new(*o.WindowLeft - by)
	}
	return o
}

// columns are the blocks that the layout has in a block row of a head, which counts over all batches.
func (r *AttentionRun[T, O, S]) columns(head, block int) []int32 {
	sharing := r.HeadsQ / max(1, r.LayoutHeads)
	row := head%r.HeadsQ/sharing*blocksIn(r.Seq, r.BlockQ) + block
	return r.layout.ColIdx[r.layout.RowPtr[row]:r.layout.RowPtr[row+1]]
}

// checkPart compares the outputs of a part with a reference.
func (r *AttentionRun[T, O, S]) checkPart(ctx context.Context, p attentionPart[T]) error {
	for _, output := range p.outputs {
		if err := ctx.Err(); err != nil {
			return err
		}
		report, err := r.compare(output, p.operands, p.layout, p.options)
		if err != nil {
			return err
		}
		if err := r.verdict(AttentionChecked{output, report}, p.where); err != nil {
			return err
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// attentionScript is a program for python3 that times torch's attention and FlashAttention-3's.
//
//go:embed torch_attention.py
var attentionScript string

func newAttentionProcess() pythonProcess {
	return pythonProcess{peer: "attention", script: attentionScript, install: "install torch for the python3 on PATH",
		served: "choose cases that it serves, install what it lacks for the python3 on PATH, or leave it out"}
}

// pythonAttention is what the script reads of a case.
type pythonAttention struct {
	Batch       int     `json:"batch"`
	Heads       int     `json:"heads"`
	KVHeads     int     `json:"kv_heads"`
	Seq         int     `json:"seq"`
	HeadSize    int     `json:"head_size"`
	DType       string  `json:"dtype"`
	Causal      bool    `json:"causal"`
	Window      int     `json:"window"` // 0: none
	BlockQ      int     `json:"block_q"`
	BlockK      int     `json:"block_k"`
	LayoutHeads int     `json:"layout_heads"`
	RowPtr      []int32 `json:"row_ptr"` // null: every block
	ColIdx      []int32 `json:"col_idx"`
	Backward    bool    `json:"backward"`
}

// enterAttention gets a way of computing attention ready, by its name. The first in a case prepares it.
func (t *pythonProcess) enterAttention(ctx context.Context, on sparsek.EngineInfo, c Case, name string, prepared *bool) (entrant, error) {
	if !slices.Contains(attentionPeers, name) {
		return entrant{}, &missing{name, "it computes no attention", "compare with " + SDPA + ", " + Flex + " or " + FA3}
	}
	err := t.start(ctx, on)
	if err == nil && !*prepared {
		err = t.prepareAttention(ctx, c)
		*prepared = err == nil
	}
	var m *missing
	if errors.As(err, &m) {
		return entrant{}, &missing{name, m.reason, m.fix}
	}
	if err != nil {
		return entrant{}, err
	}
	answer, err := t.ask(ctx, pythonRequest{Op: "way", Way: name})
	var said *scriptError
	if errors.As(err, &said) {
		return entrant{}, &missing{name, said.text, t.served}
	}
	if err != nil {
		return entrant{}, err
	}
	e := entrant{name: name, kernel: answer.Entry, dense: answer.Dense, time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
		return t.timeWay(ctx, name, repeats)
	}}
	return e, tryOnce(ctx, &e, t.served)
}

// prepareAttention has the script make the operands of a case.
func (t *pythonProcess) prepareAttention(ctx context.Context, c Case) error {
	a := c.Attention
	p, ok, err := a.Layout()
	if err != nil {
		return err
	}
	spec := pythonAttention{Batch: a.Batch, Heads: a.HeadsQ, KVHeads: a.HeadsK, Seq: a.Seq, HeadSize: a.HeadSize, DType: c.DType, Causal: a.Causal,
		Window: a.Window, Backward: c.Backward}
	if ok {
		spec.BlockQ, spec.BlockK, spec.LayoutHeads, spec.RowPtr, spec.ColIdx = a.BlockQ, a.BlockK, max(1, a.LayoutHeads), p.RowPtr, p.ColIdx
	}
	_, err = t.prepare(ctx, spec)
	return err
}

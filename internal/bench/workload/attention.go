// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"

	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/internal/matrix/rng"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// AllBlocks is the pattern of attention without a layout.
const AllBlocks = "dense"

// Attention is attention of a pattern by name, with as many keys as queries.
type Attention struct {
	Batch       int     `json:"batch"`
	HeadsQ      int     `json:"heads"`
	HeadsK      int     `json:"kv_heads"`
	Seq         int     `json:"seq"`
	HeadSize    int     `json:"head_size"`
	BlockQ      int     `json:"block_q,omitempty"` // 0 where there is no layout
	BlockK      int     `json:"block_k,omitempty"`
	Pattern     string  `json:"pattern"`           // AllBlocks, or of internal/matrix/pattern
	Density     float64 `json:"density,omitempty"` // of the pattern, as far as it takes one
	LayoutHeads int     `json:"layout_heads,omitempty"`
	Causal      bool    `json:"causal,omitempty"`
	Window      int     `json:"window,omitempty"` // keys that a query sees before its own place and, unless Causal, behind it; 0: no limit
	SoftCap     float64 `json:"soft_cap,omitempty"`
	AnyOrder    bool    `json:"any_order,omitempty"` // of the parts of the gradient of Q
	Seed        uint64  `json:"seed"`
}

// PatternNames are those that Pattern may be.
func PatternNames() []string { return append([]string{AllBlocks}, pattern.Names()...) }

// Options are the library's.
func (a Attention) Options() sparsek.AttentionOptions {
	o := sparsek.AttentionOptions{Batch: a.Batch, HeadsQ: a.HeadsQ, HeadsK: a.HeadsK, SeqQ: a.Seq, SeqK: a.Seq, HeadSize: a.HeadSize,
		LayoutHeads: a.LayoutHeads, Causal: a.Causal, SoftCap: a.SoftCap, AnyOrder: a.AnyOrder}
	if a.Window > 0 {
		o.WindowLeft = new(a.Window)
		if !a.Causal {
			o.WindowRight = new(a.Window)
		}
	}
	return o
}

// spec is the pattern of one head.
func (a Attention) spec(head int) pattern.Spec {
	return pattern.Spec{Name: a.Pattern, BlockRows: blocksIn(a.Seq, a.BlockQ), BlockCols: blocksIn(a.Seq, a.BlockK), Density: a.Density,
		Seed: rng.Split(PatternSeed(a.Seed), uint64(head))}
}

func blocksIn(extent, block int) int { return (extent + block - 1) / block }

// IndexBytes predicts how much memory on the host the layout takes.
func (a Attention) IndexBytes() (float64, error) {
	if a.Pattern == AllBlocks {
		return 0, nil
	}
	blocks, err := a.spec(0).Blocks()
	return float64(max(1, a.LayoutHeads)) * IndexBytes(float64(a.spec(0).BlockRows), blocks), err
}

// Layout makes the layout: one below the other the patterns of the heads that have one of their own. ok is false where there
// is none.
func (a Attention) Layout() (p bsr.Pattern, ok bool, err error) {
	if a.Pattern == AllBlocks {
		return p, false, nil
	}
	p.RowPtr = []int32{0}
	for head := range max(1, a.LayoutHeads) {
		one, err := pattern.Generate(a.spec(head))
		if err != nil {
			return p, false, err
		}
		p.BlockRows, p.BlockCols = p.BlockRows+one.BlockRows, one.BlockCols
		first := p.RowPtr[len(p.RowPtr)-1]
		for _, end := range one.RowPtr[1:] {
			p.RowPtr = append(p.RowPtr, first+end)
		}
		p.ColIdx = append(p.ColIdx, one.ColIdx...)
	}
	return p, true, nil
}

// layoutOf is Layout as the library takes it; nil where there is none.
func layoutOf[T sparsek.Element](a Attention) (*sparsek.BSR[T, int32], error) {
	p, ok, err := a.Layout()
	if !ok || err != nil {
		return nil, err
	}
	return &sparsek.BSR[T, int32]{Rows: p.BlockRows * a.BlockQ, Cols: a.Seq, BlockM: a.BlockQ, BlockK: a.BlockK, RowPtr: p.RowPtr, ColIdx: p.ColIdx}, nil
}

// queries and keys are the elements of Q, and of K.
func (a Attention) queries() int { return a.Batch * a.HeadsQ * a.Seq * a.HeadSize }
func (a Attention) keys() int    { return a.Batch * a.HeadsK * a.Seq * a.HeadSize }

// RandomElements is how many random numbers its operands are made of.
func (a Attention) RandomElements() int {
	return max(a.queries(), a.keys()) + attentionOperands*stagger
}

// Bytes are those of Q, K, V and O, and of the backward pass the gradients too, of elements of that size, but O's have at least
// two bytes.
func (a Attention) Bytes(element int, backward bool) float64 {
	// As a product of sizes it may be beyond any integer.
	rows := float64(a.Batch) * float64(a.Seq) * float64(a.HeadSize)
	all := rows * (float64(element)*(float64(a.HeadsQ)+2*float64(a.HeadsK)) + float64(max(element, 2))*float64(a.HeadsQ))
	if backward {
		all *= 2
	}
	return all
}

// FLOP are the operations on so many pairs of a query and a key: of the two products of a forward pass, and the five of a
// backward pass.
func (a Attention) FLOP(pairs float64, backward bool) float64 {
	products := 2.
	if backward {
		products = 5
	}
	return products * 2 * float64(a.HeadSize) * pairs
}

// DensePairs counts the pairs of attention over every block and without a window, but causal where this one is.
func (a Attention) DensePairs() float64 {
	seq := float64(a.Seq)
	pairs := seq * seq
	if a.Causal {
		pairs = seq * (seq + 1) / 2
	}
	return float64(a.Batch) * float64(a.HeadsQ) * pairs
}

// AllPairs counts those of attention that hides nothing.
func (a Attention) AllPairs() float64 {
	return float64(a.Batch) * float64(a.HeadsQ) * float64(a.Seq) * float64(a.Seq)
}

// IsDense is whether no key is hidden but by Causal.
func (a Attention) IsDense() bool { return a.Pattern == AllBlocks && a.Window == 0 }

// Rules names what hides keys, as "random, causal".
func (a Attention) Rules() string {
	parts := []string{a.Pattern}
	if a.Causal {
		parts = append(parts, "causal")
	}
	if a.Window > 0 {
		parts = append(parts, fmt.Sprintf("window %d", a.Window))
	}
	return strings.Join(parts, ", ")
}

// HeadsText is the number of query heads and, where it is another, of key heads.
func (a Attention) HeadsText() string {
	if a.HeadsQ == a.HeadsK {
		return fmt.Sprint(a.HeadsQ)
	}
	return fmt.Sprintf("%d:%d", a.HeadsQ, a.HeadsK)
}

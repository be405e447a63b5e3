// SPDX-License-Identifier: Apache-2.0

package workload

import "github.com/sparsek/sparsek/internal/matrix/rng"

// Experts is a layer of a dropless mixture of experts: H = gelu(X W1) and Y = H W2 of the rows of each expert, which has a W1
// and a W2 of its own. Rows of X lie by experts, each from a block row on.
type Experts struct {
	Count  int    `json:"count"`
	Tokens int    `json:"tokens"` // rows that are distributed, as many times as a token goes to an expert
	Width  int    `json:"width"`  // of X and Y
	Hidden int    `json:"hidden"` // of H, of one expert
	Block  int    `json:"block"`
	Seed   uint64 `json:"seed"`
}

// streamTokens follows those of patterns and operands.
const streamTokens = 17

// Rows are those of X, H and Y: room for the tokens however they are distributed.
func (e Experts) Rows() int { return (e.Tokens/e.Block + e.Count) * e.Block }

// Columns are those of H as a block-diagonal matrix.
func (e Experts) Columns() int { return e.Count * e.Hidden }

// Capacity is how many blocks of H there is room for.
func (e Experts) Capacity() int { return e.Rows() / e.Block * (e.Hidden / e.Block) }

// Counts distributes the tokens evenly at random.
func (e Experts) Counts() []int32 {
	counts := make([]int32, e.Count)
	source := rng.New(rng.Split(e.Seed, streamTokens))
	for range e.Tokens {
		counts[source.Below(e.Count)]++
	}
	return counts
}

// Blocks is how many blocks of H there are with so many tokens for each expert.
func (e Experts) Blocks(counts []int32) int {
	rows := 0
	for _, n := range counts {
		rows += blocksIn(int(n), e.Block)
	}
	return rows * (e.Hidden / e.Block)
}

// FLOP are the operations on the rows that tokens have.
func (e Experts) FLOP() float64 {
	return 4 * float64(e.Tokens) * float64(e.Width) * float64(e.Hidden)
}

// Bytes is what a layer reads and writes at least: X, Y, the weights, and H twice.
func (e Experts) Bytes(element int) float64 {
	ofTokens := float64(e.Tokens) * float64(2*e.Width+2*e.Hidden)
	return float64(element) * (ofTokens + 2*float64(e.Columns())*float64(e.Width))
}

// RandomElements is how many random numbers the operands are made of.
func (e Experts) RandomElements() int {
	return max(e.Columns(), e.Rows())*e.Width + 2*stagger
}

// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// Blocks that are taller than a tile and no multiple of it: a row group has 16 slots of 8 rows, and some of them reach
// from one block row into the next, in which other blocks are absent.
func TestBlocksTallerThanTiles(t *testing.T) {
	engine := newEngine(t, CUDA)
	for name, rows := range map[string][][]int32{
		"neighbours differ": {{0, 2}, {1}, {0, 1, 2}},
		"an empty row":      {{1}, {}, {0, 2}},
		"the first empty":   {{}, {2}},
		"none":              {{}, {}},
	} {
		for n, onDevice := range map[int]bool{72: false, 264: true} {
			t.Run(fmt.Sprintf("%s, N %d, operands on the device %t", name, n, onDevice), func(t *testing.T) {
				p := newProduct[BFloat16, int32](shape{rows: 1032*len(rows) - 5, cols: 3*1024 - 24, n: n, blockM: 1032, blockK: 1024,
					alpha: 1, beta: 0.5, kernel: "gather_bf16_128_256", seed: uint64(n)})
				random := rand.New(rand.NewPCG(uint64(n), 11))
				p.setPattern(rows, func() BFloat16 { return smallValue[BFloat16](random) })
				p.poison()
				c, info := p.run(t, engine, onDevice)
				p.verify(t, engine, info, c)
			})
		}
	}
}

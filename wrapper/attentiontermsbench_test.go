// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// Time of dense attention with lengths, bits of blocks or a bias, of 16 heads and 8192 queries and keys, as a ratio to that without.
func BenchmarkAttentionTerms(b *testing.B) {
	engine := newEngine(b, CUDA)
	ctx := b.Context()
	const heads, seq, edge = 16, 8192, 128
	random := rand.New(rand.NewPCG(5, 20))
	lengths := filled(b, engine, []int32{seq})
	blocks := seq / edge
	index := must(NewBuffer[int32](engine, blocks*blocks))(b)
	must(0, index.Fill(ctx, 0))(b)
	words := make([]int32, edge*edge/32)
	for i := range words {
		words[i] = int32(random.Uint32() | random.Uint32())
	}
	bits := filled(b, engine, words)
	bias16 := toBuffer(b, engine, newHeads[BFloat16](random, 1, 1, seq, seq, 0))
	bias32 := toBuffer(b, engine, newHeads[float32](random, 1, 1, seq, seq, 0))
	grad := Heads[float32]{Batch: 1, Heads: heads, Rows: seq, Size: seq, Buffer: must(NewBuffer[float32](engine, heads*seq*seq))(b)}
	for _, size := range []int{64, 128, 256} {
		draw := func(size int) Heads[BFloat16] {
			return toBuffer(b, engine, newHeads[BFloat16](random, 1, heads, seq, size, 0))
		}
		lse := Heads[float32]{Batch: 1, Heads: heads, Rows: seq, Size: 1, Buffer: must(NewBuffer[float32](engine, heads*seq))(b)}
		plain := AttentionOperands{Q: draw(size), K: draw(size), V: draw(size), O: draw(size), LSE: lse,
			GradO: draw(size), GradQ: draw(size), GradK: draw(size), GradV: draw(size)}
		a := must(NewAttention[BFloat16, int32](ctx, engine, nil, AttentionOptions{Batch: 1, HeadsQ: heads, HeadsK: heads, SeqQ: seq, SeqK: seq, HeadSize: size}))(b)
		b.Cleanup(func() { a.Close() })
		for _, direction := range []string{"forward", "backward"} {
			median := func(o AttentionOperands) float64 {
				options := timing.AttentionOptions{Backward: direction == "backward", Operands: []AttentionOperands{o}, Between: 1, Repeats: 7}
				times := must(timing.Attention(ctx, a, options))(b)
				slices.Sort(times)
				return times[len(times)/2].Seconds()
			}
			base := 0.0
			for _, x := range []struct {
				name string
				add  func(o *AttentionOperands)
			}{
				{"plain", func(*AttentionOperands) {}},
				{"lengths", func(o *AttentionOperands) { o.LengthsK = lengths }},
				{"bits", func(o *AttentionOperands) { o.Mask = &AttentionMask{Blocks: 1, Index: index, Bits: bits} }},
				{"bias_bf16", func(o *AttentionOperands) { o.Bias = bias16 }},
				{"bias_fp32", func(o *AttentionOperands) { o.Bias = bias32 }},
				{"bias_fp32_and_gradient", func(o *AttentionOperands) { o.Bias, o.GradBias = bias32, grad }},
			} {
				b.Run(direction+"/"+x.name+"/"+strconv.Itoa(size), func(b *testing.B) {
					o := plain
					x.add(&o)
					for b.Loop() {
						seconds := median(o)
						if base == 0 {
							base = median(plain)
						}
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(seconds*1e3, "ms")
						b.ReportMetric(seconds/base, "ratio")
					}
				})
			}
		}
	}
}

// toBuffer moves heads to a buffer of the engine, which is closed when the benchmark ends.
func toBuffer[T Element](b *testing.B, engine *Engine, h Heads[T]) Heads[T] {
	b.Helper()
	h.Buffer = filled(b, engine, h.Data)
	b.Cleanup(func() { h.Buffer.Close() })
	h.Data = nil
	return h
}

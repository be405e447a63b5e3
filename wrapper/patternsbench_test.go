// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math/rand/v2"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// The time of a call without its launch: on a GPU, calls are captured one after the other into a graph.
func BenchmarkPatterns(b *testing.B) {
	for _, backend := range []Backend{CPU, CUDA} {
		b.Run(backend.String(), func(b *testing.B) { benchmarkPatterns(b, newEngine(b, backend)) })
	}
}

func benchmarkPatterns(b *testing.B, engine *Engine) {
	background := context.Background()
	onGPU := engine.Info().Backend == CUDA
	library := must(foreign.Open(onGPU, engine.Info().Device))(b)
	defer library.Close()
	s := must(engine.NewStream())(b)
	size, inGraph := 4096, 1
	if onGPU {
		s = must(engine.StreamAt(library.Stream()))(b)
		size, inGraph = 32768, 20
	}
	defer s.Close()
	run := func(name string, bytes int, call func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(bytes * inGraph))
			calls := func() error {
				for range inGraph {
					if err := call(); err != nil {
						return err
					}
				}
				return nil
			}
			if onGPU {
				graph := must(library.Capture(foreign.CaptureRelaxed, calls))(b)
				defer graph.Close()
				calls = graph.Launch
			}
			for b.Loop() {
				must(0, calls())(b)
				must(0, library.Wait())(b)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*inGraph), "us/call")
		})
	}
	random := rand.New(rand.NewPCG(1, 1))
	const side = 1024
	masked := patternSizes{rows: side, cols: side, blockM: 1, blockK: 1}
	mask, scores := make([]byte, side*side), make([]float32, side*side)
	for i := range mask {
		mask[i], scores[i] = byte(random.IntN(8)/7), random.Float32()
	}
	x := newMadeIndex[int32](b, engine, masked, side*side)
	maskBuffer := filled(b, engine, mask)
	scoreBuffer := DeviceDense[float32]{Rows: side, Cols: side, Buffer: filled(b, engine, scores)}
	run("mask_1024", len(mask), func() error { return PatternFromMask(background, s, x.DeviceIndex, maskBuffer, 0) })
	run("top_128_of_1024", 4*len(mask), func() error { return PatternOfHighest(background, s, x.DeviceIndex, scoreBuffer, 128) })

	for _, block := range []int{16, 64, 128} {
		a := randomBSR[BFloat16, int32](patternSizes{rows: size, cols: size, blockM: block, blockK: block, seed: 2}, 0.125, false)
		d, free := inBuffers(b, engine, a, 0)
		out, bytes := must(NewBuffer[float32](engine, max(size, len(a.ColIdx))))(b), 2*len(a.Values)
		turned := newMadeIndex[int32](b, engine, patternSizes{rows: size, cols: size, blockM: block, blockK: block}, len(a.ColIdx))
		turned.BlockIdx = turned.blockIdx.front
		transpose := IndexedBy(turned.DeviceIndex, d.Values)
		transpose.BlockIdx, transpose.Bound = turned.BlockIdx, false
		name := func(what string) string { return what + "_" + map[int]string{16: "b16", 64: "b64", 128: "b128"}[block] }
		run(name("transpose"), 4*len(a.ColIdx), func() error { return TransposeIndex(background, s, turned.DeviceIndex, d) })
		run(name("norms"), bytes, func() error { return BlockNorms(background, s, d, L2Norm, out) })
		run(name("row_sums"), bytes, func() error { return SumRows(background, s, d, out) })
		run(name("column_sums"), bytes, func() error { return SumColumns(background, s, transpose, out) })
		free()
		turned.close()
		out.Close()
	}
}

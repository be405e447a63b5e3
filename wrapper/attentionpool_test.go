// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// Of every type, size and block, with gaps, on each device.
func TestPoolRows(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		eachAttentionType(t, poolRows[BFloat16, float32](engine), poolRows[Float16, float32](engine), poolRows[float32, float32](engine),
			poolRows[float64, float64](engine))
	})
}

func poolRows[T, S Element](engine *Engine) func(t *testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 27))
			extent := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
			x := newHeads[T](random, extent("batch", 3), extent("heads", 3), extent("rows", 200), extent("size", 130), rapid.SampledFrom([]int{0, 8}).Draw(t, "gap"))
			block := rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{64, 128, 500})).Draw(t, "block")
			blocks := (x.Rows + block - 1) / block
			out := like(newHeads[S](random, x.Batch, x.Heads, blocks, 3*x.Size, 0))
			s := must(engine.NewStream())(t)
			defer s.Close()
			from, to := inDeviceMemory(t, engine, x), inDeviceMemory(t, engine, out)
			defer from.Buffer.Close()
			defer to.Buffer.Close()
			if err := errors.Join(PoolRows(t.Context(), s, from, block, to), s.Wait(t.Context())); err != nil {
				t.Fatal(err)
			}
			read(t, to, out)
			unit := math.Ldexp(1, -24)
			if _, wide := any(S(0)).(float64); wide {
				unit = math.Ldexp(1, -53)
			}
			values, pooled := asDoubles(x.Data), asDoubles(out.Data)
			for b := range x.Batch {
				for h := range x.Heads {
					for i := range blocks {
						for d := range x.Size {
							count := min(block, x.Rows-i*block)
							sum, size, most, least := 0., 0., math.Inf(-1), math.Inf(1)
							for r := range count {
								value := values[placeOf(x, b, h, i*block+r)+d]
								sum, size, most, least = sum+value, size+math.Abs(value), max(most, value), min(least, value)
							}
							got := pooled[placeOf(out, b, h, i):][:3*x.Size]
							if mean := got[d]; !(math.Abs(mean-sum/float64(count)) <= unit*float64(count+4)*size/float64(count)) {
								t.Fatalf("block %d: the mean of column %d is %v and not %v", i, d, mean, sum/float64(count))
							}
							if got[x.Size+d] != most || got[2*x.Size+d] != least {
								t.Fatalf("block %d: column %d is from %v to %v and not from %v to %v", i, d, got[2*x.Size+d], got[x.Size+d], least, most)
							}
						}
					}
				}
			}
		})
	}
}

func TestPoolRowsThatDoNotFit(t *testing.T) {
	engine := newEngine(t, CPU)
	s := must(engine.NewStream())(t)
	defer s.Close()
	random := rand.New(rand.NewPCG(4, 27))
	x, out := newHeads[BFloat16](random, 2, 2, 100, 8, 0), newHeads[float32](random, 2, 2, 7, 24, 0)
	for _, c := range []struct {
		name  string
		x     HeadsOperand
		block int
		out   HeadsOperand
		want  error
	}{
		{"as it is", x, 16, out, nil},
		{"nil", x, 16, nil, ErrNullPointer},
		{"block", x, 0, out, ErrBadSize},
		{"another block", x, 15, newHeads[float32](random, 2, 2, 6, 24, 0), ErrBadSize},
		{"type", x, 16, newHeads[BFloat16](random, 2, 2, 7, 24, 0), ErrBadArgument},
		{"gaps", x, 16, newHeads[float32](random, 2, 2, 7, 24, 1), ErrBadLeadingDimension},
		{"memory", x, 16, Heads[float32]{Batch: 2, Heads: 2, Rows: 7, Size: 24, Data: make([]float32, 100)}, ErrBadSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := PoolRows(t.Context(), s, c.x, c.block, c.out); !errors.Is(err, c.want) {
				t.Errorf("%v, and not %v", err, c.want)
			}
		})
	}
}

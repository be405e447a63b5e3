// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// Random attention, both passes, for as long as -soak.time says, with every element checked. It stops at the first
// failure, and prints how to repeat it: with -rapid.seed the case is the first of its type.
func TestSoakAttention(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		length := *soakTime
		if length == 0 {
			length = soakTimeByDefault()
		}
		end := time.Now().Add(length)
		cases := 0
		for time.Now().Before(end) && !t.Failed() {
			soakAttention[BFloat16](t, engine, end, &cases)
			soakAttention[Float16](t, engine, end, &cases)
			soakFP8[BFloat16](t, engine, end, &cases)
			soakFP8[Float16](t, engine, end, &cases)
		}
		t.Logf("%d cases", cases)
	})
}

// soakAttention checks some cases, none that begins behind the end.
func soakAttention[T Element](t *testing.T, engine *Engine, end time.Time, cases *int) {
	rapid.Check(t, func(t *rapid.T) {
		if time.Now().After(end) {
			return
		}
		*cases++
		if engine.Info().Backend == CUDA {
			c := drawAttentionForGPU[T](t, 64, 16)
			c.check(t, engine.Library(), c.runInBuffers(t, engine), 1)
			return
		}
		c := drawAttention[T, float32](t)
		c.check(t, engine.Library(), c.run(t, engine), 1)
	})
}

// soakFP8 checks forward passes of E4M3. A GPU may refuse some.
func soakFP8[O Element](t *testing.T, engine *Engine, end time.Time, cases *int) {
	rapid.Check(t, func(t *rapid.T) {
		if time.Now().After(end) {
			return
		}
		onGPU := engine.Info().Backend == CUDA
		drawn, spread := drawAttention[Float8E4M3, float32], 3.
		if onGPU {
			drawn, spread = func(t *rapid.T) *attentionCase[Float8E4M3, float32] {
				return drawAttentionForGPU[Float8E4M3](t, 64, 16)
			}, 1
		}
		c := newFP8[O](t, drawn(t), spread)
		info, err := c.run(t, engine)
		if onGPU && errors.Is(err, ErrNoSuchKernel) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		*cases++
		c.check(t, engine.Library(), info, 1)
	})
}

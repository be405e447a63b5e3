// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// Sets of operands are taken in turn, those of calls that are not timed too, and all of a call is computed.
func TestTimeAttention(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		const rows, size = 128, 64
		ctx := context.Background()
		a, err := NewAttention[BFloat16, int32](ctx, engine, nil, AttentionOptions{Batch: 1, HeadsQ: 2, HeadsK: 1, SeqQ: rows, SeqK: rows, HeadSize: size})
		if errors.Is(err, ErrNoSuchKernel) {
			t.Skipf("skipped: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		random := rand.New(rand.NewPCG(3, 4))
		put := func(heads int) Heads[BFloat16] {
			h := newHeads[BFloat16](random, 1, heads, rows, size, 0)
			h.Buffer = must(NewBuffer[BFloat16](engine, len(h.Data)))(t)
			t.Cleanup(func() { h.Buffer.Close() })
			if err := h.Buffer.Write(ctx, h.Data); err != nil {
				t.Fatal(err)
			}
			h.Data = nil
			return h
		}
		sets := make([]AttentionOperands, 4)
		for i := range sets {
			sets[i] = AttentionOperands{Q: put(2), K: put(1), V: put(1), O: put(2)}
		}
		const nan = 0xff // in every byte
		written := func(i int) bool {
			o := sets[i].O.(Heads[BFloat16]).Buffer
			host := make([]BFloat16, 2*rows*size)
			if err := o.Read(ctx, host); err != nil {
				t.Fatal(err)
			}
			for _, x := range host {
				if x == nan<<8|nan {
					return false
				}
			}
			return o.Fill(ctx, nan) == nil
		}
		for i := range sets {
			if written(i); written(i) {
				t.Fatal("NaN was not found")
			}
		}
		times, err := timing.Attention(ctx, a, timing.AttentionOptions{Operands: sets, Between: 1, Repeats: 1})
		if err != nil || len(times) != 1 || times[0] <= 0 {
			t.Fatalf("%v, %v", times, err)
		}
		if !written(0) || !written(1) || written(2) || written(3) {
			t.Error("a timed call behind another one are not those with the first two sets")
		}
		if times, err = timing.Attention(ctx, a, timing.AttentionOptions{Operands: sets[2:], Repeats: 3}); err != nil || len(times) != 3 || !written(2) || !written(3) {
			t.Errorf("%v, %v", times, err)
		}

		_, err = timing.Attention(ctx, a, timing.AttentionOptions{Repeats: 1})
		wantFault(t, err, ErrBadSize, "no operands")
		_, err = timing.Attention(ctx, a, timing.AttentionOptions{Operands: sets})
		wantFault(t, err, ErrBadSize, "0 repeats")
		_, err = timing.Attention(ctx, a, timing.AttentionOptions{Operands: []AttentionOperands{sets[0], {Q: sets[0].Q}}, Repeats: 1})
		wantFault(t, err, ErrNullPointer, "K is nil")
		_, err = timing.Attention(ctx, a, timing.AttentionOptions{Operands: sets, Repeats: 1, Backward: true})
		wantFault(t, err, ErrNullPointer, "LSE is nil")
		stopped, stop := context.WithCancel(ctx)
		stop()
		if _, err = timing.Attention(stopped, a, timing.AttentionOptions{Operands: sets, Repeats: 1}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := a.Close(); err != nil { // nothing is in use any more
			t.Error(err)
		}
		if _, err = timing.Attention(ctx, a, timing.AttentionOptions{Operands: sets, Repeats: 1}); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

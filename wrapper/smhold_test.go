// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

func TestHoldSMs(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		background := context.Background()
		if engine.Info().Backend == CPU {
			_, err := timing.HoldSMs(background, engine, 1, time.Second)
			wantFault(t, err, ErrNoDevice, "no GPU")
			return
		}
		all := must(engine.Library().Devices())(t)[engine.Info().Device].SMs
		_, err := timing.HoldSMs(background, engine, all, time.Second)
		wantFault(t, err, ErrBadSize, "at least one must be left")
		_, err = timing.HoldSMs(background, engine, 1, 0)
		wantFault(t, err, ErrBadArgument, "seconds = 0")

		// Products are computed by the SMs that are left, one in the worst case. All memory is taken before: cudaFree waits
		// for the kernel that holds SMs.
		matrix := must(NewMatrix(background, engine, small()))(t)
		plan := must(matrix.Plan(background, PlanOptions{N: 8}))(t)
		b := DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: must(NewBuffer[float32](engine, 48))(t)}
		c := DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: must(NewBuffer[float32](engine, 32))(t)}
		values := make([]float32, 48)
		for i := range values {
			values[i] = float32(i)
		}
		product := func() []float32 {
			got := make([]float32, 32)
			if err := errors.Join(c.Buffer.Fill(background, 0), plan.Multiply(background, 1, 0, Operands{B: b, C: c}), c.Buffer.Read(background, got)); err != nil {
				t.Fatal(err)
			}
			return got
		}
		if err := b.Buffer.Write(background, values); err != nil {
			t.Fatal(err)
		}
		want := product()
		hold := func(count int) *timing.SMHold {
			began := time.Now()
			held := must(timing.HoldSMs(background, engine, count, 20*time.Second))(t)
			t.Cleanup(func() { _ = held.Release() }) // the engine's Close waits for it
			if took := time.Since(began); took > time.Second {
				t.Logf("%d SMs were held after %v", count, took)
			}
			return held
		}
		for _, count := range []int{1, 4, all - 1} {
			hold := hold(count)
			got := product()
			if err := errors.Join(hold.Release(), hold.Release()); err != nil {
				t.Fatalf("%d SMs held: %v", count, err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d SMs held: C = %v, want %v", count, got, want)
			}
		}

		// No SM is left to a second hold, of another engine, which says so and leaves nothing behind.
		other := newEngine(t, CUDA)
		first := hold(all - 1)
		_, err = timing.HoldSMs(background, other, 2, 100*time.Millisecond)
		wantFault(t, err, ErrCUDA, "of 2 SMs were held")
		_, err = timing.HoldSMs(background, engine, 1, time.Second)
		wantFault(t, err, ErrBadArgument, "held already")
		if err := first.Release(); err != nil {
			t.Fatal(err)
		}

		// Products wait for no hold, also where streams are more than the device's queues. To create a stream may take
		// memory, and waits.
		var streams []*Stream
		for range 64 {
			s := must(engine.NewStream())(t)
			defer s.Close()
			streams = append(streams, s)
		}
		second := hold(1)
		for _, s := range streams {
			if err := errors.Join(plan.Enqueue(background, s, 1, 0, Operands{B: b, C: c}), s.Wait(background)); err != nil {
				t.Fatal(err)
			}
		}
		if err := second.Release(); err != nil {
			t.Fatal(err)
		}

		short := must(timing.HoldSMs(background, engine, 1, 10*time.Millisecond))(t)
		time.Sleep(100 * time.Millisecond)
		if err := short.Release(); !errors.Is(err, timing.ErrHoldExpired) {
			t.Errorf("error is %v, want ErrHoldExpired", err)
		}
	})
}

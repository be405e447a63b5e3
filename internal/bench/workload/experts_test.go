// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// The check takes what is right, and finds another H, another Y and rows that were not written, with any distribution.
func TestExpertsCheck(t *testing.T) {
	ctx := context.Background()
	for _, engine := range newEngines(t) {
		for seed := range uint64(4) {
			e := Experts{Count: 5, Tokens: 7 + 40*int(seed), Width: 40, Hidden: 32, Block: 16, Seed: seed}
			run, err := NewExpertsRun(ctx, engine, e, RandomB[sparsek.BFloat16](1, e.RandomElements(), seed).Data)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			if err := run.Check(ctx); err != nil {
				t.Fatal(err)
			}
			if times, err := run.Time(ctx, 2); err != nil || len(times) != 2 || times[0] <= 0 {
				t.Errorf("%v, %v", times, err)
			}
			for name, buffer := range map[string]*sparsek.DeviceBuffer[sparsek.BFloat16]{"x": run.x.Buffer, "w1": run.w1.Buffer, "w2": run.w2.Buffer} {
				held := make([]sparsek.BFloat16, buffer.Len())
				if err := errors.Join(buffer.Read(ctx, held), buffer.Fill(ctx, 0x3c)); err != nil {
					t.Fatal(err)
				}
				if err := run.Check(ctx); !errors.Is(err, ErrWrong) {
					t.Errorf("another %s was not found: %v", name, err)
				}
				if err := buffer.Write(ctx, held); err != nil {
					t.Fatal(err)
				}
			}
			none := make([]int32, e.Count)
			if err := run.counts.Write(ctx, none); err != nil {
				t.Fatal(err)
			}
			if err := run.Check(ctx); !errors.Is(err, ErrWrong) {
				t.Errorf("a product without blocks was not found: %v", err)
			}
		}
	}
}

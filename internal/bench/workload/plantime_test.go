// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"testing"
	"time"
)

// Quick plans are timed many times, slow ones a few, and the first one never counts.
func TestEnoughPlans(t *testing.T) {
	for _, c := range []struct {
		first, each time.Duration
		want        int
	}{
		{time.Second, 100 * time.Microsecond, 1 + 31},
		{time.Microsecond, 3 * time.Millisecond, 1 + 10},
		{time.Microsecond, time.Second, 1 + 5},
	} {
		times := []time.Duration{c.first}
		for !enoughPlans(times) {
			times = append(times, c.each)
		}
		if len(times) != c.want {
			t.Errorf("plans of %v after one of %v: %d are made, want %d", c.each, c.first, len(times), c.want)
		}
	}
	if enoughPlans(slices.Repeat([]time.Duration{time.Hour}, 5)) || enoughPlans(nil) {
		t.Error("fewer than the fewest are enough")
	}
}

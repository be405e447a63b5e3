// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"
)

// The wider of the two spreads decides, whichever of the two it is of.
func TestTie(t *testing.T) {
	at := func(low, median, high int) Timing {
		return Timing{Runs: 9, Quarter: time.Duration(low), Median: time.Duration(median), ThreeQuarters: time.Duration(high)}
	}
	for _, c := range []struct {
		a, b Timing
		want bool
	}{
		{at(100, 100, 100), at(100, 100, 100), true},
		{at(100, 100, 100), at(101, 101, 101), false},
		{at(95, 100, 105), at(110, 110, 110), true}, // by just the spread
		{at(95, 100, 105), at(111, 111, 111), false},
		{at(100, 100, 100), at(100, 130, 140), true},
	} {
		if got, back := c.a.Tie(c.b), c.b.Tie(c.a); got != c.want || back != c.want {
			t.Errorf("%v and %v: %v and %v, want %v", c.a, c.b, got, back, c.want)
		}
	}
}

func TestColdCopies(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		m, n, k, values, want int
	}{
		{8192, 8192, 8192, 8 * mib, 2},  // 272 MiB a product
		{4096, 4096, 4096, 2 * mib, 3},  // 68
		{8192, 16, 8192, 13 * mib, 6},   // 26 of A: only they are new
		{8192, 512, 8192, 13 * mib, 6},  // 42, of which B and C stay
		{512, 16, 512, mib / 16, 16},    // small all over
		{8192, 8192, 8192, 64 * mib, 2}, // 384
	} {
		if got := ColdCopies(60*mib, 2, c.values, c.m, c.n, c.k); got != c.want {
			t.Errorf("%+v: %d copies", c, got)
		}
	}
}

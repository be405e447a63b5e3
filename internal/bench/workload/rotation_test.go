// SPDX-License-Identifier: Apache-2.0

package workload

import "testing"

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

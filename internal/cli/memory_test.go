// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"math"
	"runtime"
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	if err := checkMemory(100, need{"A", 60}, need{"B", 40}); err != nil {
		t.Error(err)
	}
	err := checkMemory(100, need{"A", 60}, need{"B", 41})
	if exitCode(err) != exitNoMemory || !strings.Contains(err.Error(), "60 B for A, 41 B for B") {
		t.Error(err)
	}
	if err := checkMemory(math.MaxInt64, need{"A", 1e40}); exitCode(err) != exitNoMemory {
		t.Error(err)
	}
	if availableMemory() < 1<<20 {
		t.Errorf("%d bytes available", availableMemory())
	}
}

// Products that cannot be are refused before any memory is taken for them, by every command that makes patterns.
func TestTooLargeProducts(t *testing.T) {
	needLibrary(t)
	for _, c := range []struct {
		args string
		code int
	}{
		{"run --pattern random --size 100000000x100000000x100000000", exitUsage},
		{"run --pattern random --size 400000x64x400000 --block 1", exitUsage},
		{"run --pattern random --size 2000000x1x2000000 --block 1 --density 0.0005", exitNoMemory}, // an index of 52 GB
		{"run --pattern window --size 2000000x1000000x2000000", exitNoMemory},
		{"verify --size 100000000x100000000x100000000", exitUsage},
		{"verify --size 2000000x2000000x2000000", exitNoMemory},
		{"tune --size 100000000x100000000x100000000", exitUsage},
		{"tune --pattern stencil --size 300000000x300000000x300000000 --block 128", exitNoMemory},
		{"bench --suite sweep --size 2000000000x2000000000x2000000000", exitNoMemory},
		{"bench --suite blocks --size 2000000x2000000x2000000", exitNoMemory},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, _, stderr := invoke(append(strings.Fields(c.args), "--device", "cpu")...)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; code != c.code || taken > 64<<20 {
			t.Errorf("%s: code %d, want %d, after %d bytes: %s", c.args, code, c.code, taken, stderr)
		}
	}
}

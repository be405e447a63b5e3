// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// availableMemory is what the system could give without swapping, in bytes; the largest number where it does not say.
func availableMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return math.MaxInt64
}

// need is memory for one thing.
type need struct {
	what  string
	bytes float64 // as a product of sizes it may be beyond any integer
}

// checkMemory refuses what the system cannot hold, before it runs into it.
func checkMemory(available int64, needs ...need) error {
	total := 0.0
	var parts []string
	for _, n := range needs {
		total += n.bytes
		parts = append(parts, fmt.Sprintf("%s for %s", formatLarge(n.bytes), n.what))
	}
	if total <= float64(available) {
		return nil
	}
	return failf(exitNoMemory, "this needs %s of memory (%s) and %s are free: choose smaller sizes or blocks",
		formatLarge(total), strings.Join(parts, ", "), term.FormatBytes(available))
}

func formatLarge(bytes float64) string {
	if bytes >= math.MaxInt64 {
		return fmt.Sprintf("%.1e bytes", bytes)
	}
	return term.FormatBytes(int64(bytes))
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"

	"github.com/sparsek/sparsek/internal/sys/procfs"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// availableMemory is what this process can take without swapping, in bytes, within the limit of the shell (ulimit -v).
// The largest number where nothing is known.
func availableMemory() int64 {
	available := procfs.AvailableMemory(os.DirFS("/"))
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err == nil && limit.Cur < math.MaxInt64 {
		available = min(available, int64(limit.Cur))
	}
	return available
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

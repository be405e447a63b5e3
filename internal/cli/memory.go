// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// availableMemory is what this process can take without swapping, in bytes: what the system has free, within the limits of
// its control group and of the shell (ulimit -v). The largest number where nothing is known.
func availableMemory() int64 {
	available := min(freeMemory(os.DirFS("/")), groupMemory(os.DirFS("/sys/fs/cgroup")))
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err == nil && limit.Cur < math.MaxInt64 {
		available = min(available, int64(limit.Cur))
	}
	return available
}

// freeMemory is what the system says that it can give.
func freeMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return math.MaxInt64
}

// groupMemory is what is left to a container's control group (version 2); files that are only cached do not count as used.
func groupMemory(group fs.FS) int64 {
	number := func(name string) (int64, bool) {
		text, err := fs.ReadFile(group, name)
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" where there is no limit
		return n, err == nil
	}
	limit, limited := number("memory.max")
	used, known := number("memory.current")
	if !limited || !known {
		return math.MaxInt64
	}
	if stat, err := fs.ReadFile(group, "memory.stat"); err == nil {
		for line := range strings.Lines(string(stat)) {
			var cached int64
			if n, _ := fmt.Sscanf(line, "inactive_file %d", &cached); n == 1 {
				used -= cached
			}
		}
	}
	return max(0, limit-used)
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

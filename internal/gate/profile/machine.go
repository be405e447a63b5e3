// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"os"
	"strings"

	"github.com/sparsek/sparsek/internal/gate/ncu"
)

// machineStart names the time since which this machine, or container, is up: two runs with different ones have a start
// between them.
func machineStart() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("profile: %w", err)
	}
	first, err := os.ReadFile("/proc/1/stat")
	if err != nil {
		return "", fmt.Errorf("profile: %w", err)
	}
	// The start time is the 22nd field; the second, a name in brackets, may hold blanks.
	fields := strings.Fields(string(first)[strings.LastIndex(string(first), ")")+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("profile: /proc/1/stat has another form than is known: %q", first)
	}
	return ncu.Hash([]byte(strings.TrimSpace(string(boot)) + " " + fields[19]))[:16], nil
}

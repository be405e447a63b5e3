// SPDX-License-Identifier: Apache-2.0

// Package procfs reads what Linux says of the machine and of this process:
// /proc and the cgroups.
package procfs

import "strings"

// Field returns the second word of the first line of text whose first word is
// name, and whether there is one.
func Field(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == name {
			return words[1], true
		}
	}
	return "", false
}

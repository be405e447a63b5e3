// SPDX-License-Identifier: Apache-2.0

package sass

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Usage is what one kernel takes of the machine, as `ptxas -v` reports it.
// Sizes are bytes a thread, static shared memory bytes a block.
type Usage struct {
	Symbol       string
	Registers    int
	Barriers     int
	StaticShared int
	Stack        int
	SpillStores  int
	SpillLoads   int
}

var (
	entryLine  = regexp.MustCompile(`^ptxas info\s*: Compiling entry function '([^']+)'`)
	frameLine  = regexp.MustCompile(`^\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedLine   = regexp.MustCompile(`^ptxas info\s*: Used (\d+) registers(.*)`)
	adviceLine = regexp.MustCompile(`^ptxas info\s*: \(C\d+\)`)
	extraField = regexp.MustCompile(`(\d+) (?:bytes )?(barriers|smem)\b`)
)

// ParseUsage reads a compiler's output with `ptxas -v` in it. It returns the
// kernels in its order and, as notes, every line that is more than
// figures: warnings and advice. Functions that are called rather than
// inlined add their stack and spills to the kernel they were compiled with.
func ParseUsage(output string) (kernels []Usage, notes []string, err error) {
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		var current *Usage
		if len(kernels) > 0 {
			current = &kernels[len(kernels)-1]
		}
		if m := entryLine.FindStringSubmatch(line); m != nil {
			kernels = append(kernels, Usage{Symbol: m[1]})
			continue
		}
		frame, used := frameLine.FindStringSubmatch(line), usedLine.FindStringSubmatch(line)
		switch {
		case (frame != nil || used != nil) && current == nil:
			return nil, nil, fmt.Errorf("ptxas: figures before the first kernel: %q", line)
		case frame != nil:
			current.Stack += number(frame[1])
			current.SpillStores += number(frame[2])
			current.SpillLoads += number(frame[3])
		case used != nil:
			current.Registers = number(used[1])
			for _, field := range extraField.FindAllStringSubmatch(used[2], -1) {
				if field[2] == "barriers" {
					current.Barriers = number(field[1])
				} else {
					current.StaticShared = number(field[1])
				}
			}
		case adviceLine.MatchString(line): // "(C7510) Potential Performance Loss" is worth a reader's while
			notes = append(notes, line)
		case strings.HasPrefix(line, "ptxas info"), strings.TrimSpace(line) == "":
		default:
			notes = append(notes, line)
		}
	}
	return kernels, notes, nil
}

// number reads digits that a regular expression has matched; a number beyond
// int becomes the largest one.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

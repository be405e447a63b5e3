// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sparsek/sparsek/internal/ncu"
	"github.com/sparsek/sparsek/internal/process"
)

// State is how a GPU stood over a time, as nvidia-smi tells it.
type State struct {
	Known       bool    `json:"known"` // nvidia-smi answered
	UUID        string  `json:"uuid,omitempty"`
	Driver      string  `json:"driver,omitempty"`
	SMClock     float64 `json:"sm_mhz"`     // the lowest that was seen
	MemoryClock float64 `json:"memory_mhz"` // the lowest that was seen
	Temperature float64 `json:"celsius"`    // the highest that was seen
	Power       float64 `json:"watts"`      // the highest that was seen
	Reasons     uint64  `json:"clock_event_reasons"`
	Seen        int     `json:"seen"` // times that were looked at
}

// The driver's reasons for lower clocks (NVML's nvmlClocksEventReason...) under which figures say nothing of a kernel.
var throttles = []struct {
	bit  uint64
	name string
}{
	{0x8, "hardware slowdown"}, {0x20, "too hot (software)"}, {0x40, "too hot (hardware)"}, {0x80, "power brake (hardware)"},
}

// Throttled says why the GPU was slowed down; "" where it was not, or where nobody tells.
func (s State) Throttled() string {
	var why []string
	for _, t := range throttles {
		if s.Reasons&t.bit != 0 {
			why = append(why, t.name)
		}
	}
	return strings.Join(why, ", ")
}

// Merge takes in what was seen later.
func (s State) Merge(next State) State {
	switch {
	case !next.Known:
		return s
	case !s.Known:
		return next
	}
	s.SMClock, s.MemoryClock = min(s.SMClock, next.SMClock), min(s.MemoryClock, next.MemoryClock)
	s.Temperature, s.Power = max(s.Temperature, next.Temperature), max(s.Power, next.Power)
	s.Reasons |= next.Reasons
	s.Seen += next.Seen
	return s
}

const stateQuery = "uuid,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw,clocks_event_reasons.active"

// look asks nvidia-smi once.
func look(ctx context.Context, smi string) State {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := process.Command{Args: []string{
		smi, "--query-gpu=" + stateQuery, "--format=csv,noheader,nounits", "--id=" + visibleDevice(os.Getenv("CUDA_VISIBLE_DEVICES")),
	}}.Output(ctx)
	if err != nil {
		return State{}
	}
	return parseState(text)
}

// visibleDevice is the first GPU that CUDA shows, as nvidia-smi names it.
func visibleDevice(visible string) string {
	first, _, _ := strings.Cut(visible, ",")
	if first = strings.TrimSpace(first); first == "" {
		return "0"
	}
	return first
}

// parseState reads one line of nvidia-smi's. A figure that it does not tell ("[N/A]") is 0.
func parseState(text string) State {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	fields := strings.Split(line, ",")
	if len(fields) != strings.Count(stateQuery, ",")+1 {
		return State{}
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	number := func(i int) float64 {
		v, _ := strconv.ParseFloat(fields[i], 64)
		return v
	}
	reasons, err := strconv.ParseUint(fields[6], 0, 64)
	if err != nil {
		return State{}
	}
	return State{true, fields[0], fields[1], number(2), number(3), number(4), number(5), reasons, 1}
}

// lookEvery is how often the GPU's state is asked for while it works: seldom enough to disturb nothing.
const lookEvery = 5 * time.Second

// watch looks at the state until stop is called, which gives all that was seen.
func watch(ctx context.Context, smi string) (stop func() State) {
	ctx, cancel := context.WithCancel(ctx)
	seen := look(ctx, smi)
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for seen.Known {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				seen = seen.Merge(look(ctx, smi))
			}
		}
	})
	return func() State {
		cancel()
		group.Wait()
		return seen
	}
}

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

// SPDX-License-Identifier: Apache-2.0

// Package nvsmi reads the state of a GPU from nvidia-smi: its clocks, and the reasons for which they are reduced.
package nvsmi

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// State is the state of a GPU over a time, as nvidia-smi reports it.
type State struct {
	Known       bool    `json:"known"` // nvidia-smi answered
	UUID        string  `json:"uuid,omitempty"`
	Driver      string  `json:"driver,omitempty"`
	SMClock     float64 `json:"sm_mhz"`     // the lowest that was seen
	MemoryClock float64 `json:"memory_mhz"` // the lowest that was seen
	Temperature float64 `json:"celsius"`    // the highest that was seen
	Power       float64 `json:"watts"`      // the highest that was seen
	Reasons     uint64  `json:"clock_event_reasons"`
	Seen        int     `json:"seen"` // number of readings
}

// The driver's reasons for lower clocks (NVML's nvmlClocksEventReason...), but for that the GPU has nothing to do.
var reasons = []struct {
	bit      uint64
	name     string
	throttle bool // figures measured then say nothing about a kernel
}{
	{0x2, "clocks set by the user", false}, {0x4, "power cap", false}, {0x8, "hardware slowdown", true}, {0x10, "sync boost", false},
	{0x20, "too hot (software)", true}, {0x40, "too hot (hardware)", true}, {0x80, "power brake (hardware)", true},
	{0x100, "display clocks", false},
}

// Throttled says why the GPU was slowed down so far that its figures say nothing of a kernel; "" where it was not, or
// where it is not known.
func (s State) Throttled() string { return s.why(func(throttle bool) bool { return throttle }) }

// Slowed says all reasons for which clocks were below the highest; "" where there were none, or where nvidia-smi does not report it. A
// power cap is one: products at the full rate of the tensor cores run into it.
func (s State) Slowed() string { return s.why(func(bool) bool { return true }) }

func (s State) why(counts func(throttle bool) bool) string {
	var why []string
	for _, t := range reasons {
		if s.Reasons&t.bit != 0 && counts(t.throttle) {
			why = append(why, t.name)
		}
	}
	return strings.Join(why, ", ")
}

// Merge adds later readings.
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

// Program is nvidia-smi, where it is on PATH.
const Program = "nvidia-smi"

// Look asks the program smi once about the GPU that CUDA counts as number device. Where smi is not there or does not
// answer, the state is not Known.
func Look(ctx context.Context, smi string, device int) State {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := process.Command{Args: []string{
		smi, "--query-gpu=" + stateQuery, "--format=csv,noheader,nounits", "--id=" + VisibleDevice(device),
	}}.Output(ctx)
	if err != nil {
		return State{}
	}
	return parseState(text)
}

// LookWhile reads the state repeatedly while work runs: an idle GPU has other clocks.
func LookWhile(ctx context.Context, look func(context.Context) State, work func(context.Context) error) (State, error) {
	seen := make(chan State, 1)
	go func() { seen <- look(ctx) }()
	for {
		select {
		case state := <-seen:
			return state, nil
		default:
			if err := work(ctx); err != nil {
				<-seen
				return State{}, err
			}
		}
	}
}

// VisibleDevice is nvidia-smi's name for the GPU that CUDA counts as number device.
func VisibleDevice(device int) string {
	return visibleDevice(os.Getenv("CUDA_VISIBLE_DEVICES"), device)
}

func visibleDevice(visible string, device int) string {
	if strings.TrimSpace(visible) == "" {
		return strconv.Itoa(device)
	}
	list := strings.Split(visible, ",")
	return strings.TrimSpace(list[min(device, len(list)-1)])
}

// parseState reads one line of nvidia-smi's output. A figure that it does not report ("[N/A]") is 0.
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

// lookEvery is the interval between readings while the GPU works: long enough not to disturb it.
const lookEvery = 5 * time.Second

// Watch looks at the state of the first GPU that CUDA shows until stop is called, which gives all that was seen.
func Watch(ctx context.Context, smi string) (stop func() State) {
	ctx, cancel := context.WithCancel(ctx)
	seen := Look(ctx, smi, 0)
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for seen.Known {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				seen = seen.Merge(Look(ctx, smi, 0))
			}
		}
	})
	return func() State {
		cancel()
		group.Wait()
		return seen
	}
}

// SPDX-License-Identifier: Apache-2.0

package nvml

import "time"

// poll is how often the counter is read: often enough to see a step of it soon, seldom enough to cost the driver little.
const poll = 10 * time.Millisecond

// Meter measures power while it runs.
type Meter struct {
	stop  chan struct{}
	watts chan float64
}

// step is a change of the counter.
type step struct {
	at     time.Time
	joules float64
}

// Measure begins to measure. Stop must follow.
func (d *Device) Measure() *Meter {
	m := &Meter{make(chan struct{}), make(chan float64, 1)}
	go m.run(d.Joules)
	return m
}

// Stop ends it and gives the mean power in watts between the counter's first and its last step, 0 where it made no two.
func (m *Meter) Stop() float64 {
	close(m.stop)
	return <-m.watts
}

func (m *Meter) run(read func() (float64, error)) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var first, last step
	var seen float64
	for {
		select {
		case <-m.stop:
			m.watts <- power(first, last)
			return
		case <-ticker.C:
		}
		now, err := read()
		if err != nil || now == seen {
			continue
		}
		if seen > 0 { // the first reading is within a step
			last = step{time.Now(), now}
			if first.at.IsZero() {
				first = last
			}
		}
		seen = now
	}
}

func power(first, last step) float64 {
	if !last.at.After(first.at) {
		return 0
	}
	return (last.joules - first.joules) / last.at.Sub(first.at).Seconds()
}

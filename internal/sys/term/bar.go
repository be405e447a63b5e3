// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"strings"
	"time"
)

// Bar is the line of one job. Its amounts are in the unit it was started with.
type Bar struct {
	r     *Reporter
	name  string
	total int64
	unit  Unit
	began time.Time

	// Below: guarded by r.mu.
	done  int64
	base  int64 // done when the rate began to count; moved when Set goes back
	spoke time.Time
	ended bool
}

// Add counts n more as done.
func (b *Bar) Add(n int64) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.done += n
}

// Set says how much is done in all. Going back, as a retried download does,
// restarts the rate.
func (b *Bar) Set(n int64) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if n < b.done {
		b.base, b.began = n, b.r.now()
	}
	b.done = n
}

// SetTotal says how much there is to do, where that came to be known late.
func (b *Bar) SetTotal(n int64) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.total = n
}

// Done ends the job well and leaves a line that says how long it took. Only
// the first of Done and Fail counts.
func (b *Bar) Done() {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if b.ended {
		return
	}
	b.ended = true
	took := b.r.now().Sub(b.began)
	line := fmt.Sprintf("%s %s: %s in %s", b.r.paint("32", "done"), b.name, b.unit.format(b.done), seconds(took))
	if b.unit == Bytes && took >= time.Second {
		line += fmt.Sprintf(" (%s/s)", b.unit.format(b.rate(took)))
	}
	b.r.end(b, line)
}

// Fail ends the job with its cause. Only the first of Done and Fail counts.
func (b *Bar) Fail(err error) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if b.ended {
		return
	}
	b.ended = true
	b.r.end(b, fmt.Sprintf("%s %s: %v", b.r.paint("31", "failed"), b.name, err))
}

// rate is the amount a second over took, which is longer than zero.
func (b *Bar) rate(took time.Duration) int64 {
	return int64(float64(b.done-b.base) / took.Seconds())
}

// status is the job's line while it runs.
func (b *Bar) status(now time.Time) string {
	var s strings.Builder
	s.WriteString(b.name)
	s.WriteString("  ")
	s.WriteString(b.unit.format(b.done))
	if b.total > 0 {
		fmt.Fprintf(&s, " of %s  %d %%", b.unit.format(b.total), percent(b.done, b.total))
	}
	took := now.Sub(b.began)
	if took < time.Second {
		return s.String()
	}
	rate := b.rate(took)
	if b.unit == Bytes {
		fmt.Fprintf(&s, "  %s/s", b.unit.format(rate))
	} else {
		fmt.Fprintf(&s, "  %s", seconds(took))
	}
	if made := b.done - b.base; made > 0 && b.total > b.done {
		left := time.Duration(float64(took) / float64(made) * float64(b.total-b.done))
		fmt.Fprintf(&s, "  %s left", seconds(left))
	}
	return s.String()
}

// percent is 100 only when all is done.
func percent(done, total int64) int64 {
	if done >= total {
		return 100
	}
	return int64(float64(done) / float64(total) * 100)
}

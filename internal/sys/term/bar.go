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
	weight, weightDone int64 // of all the work and of what is done; 0: total and done say it
	done               int64
	base               int64 // done when the rate began to count; moved when Set goes back
	spoke              time.Time
	ended              bool
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

// Weigh gives all the work a weight, where the things that are counted take
// very different times. From then on AddWeighed counts, and the share that is
// done and the time left go by weight.
func (b *Bar) Weigh(total int64) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.weight = total
}

// AddWeighed counts one more as done, of the weight given.
func (b *Bar) AddWeighed(weight int64) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.done++
	b.weightDone += weight
}

// AddFree counts one more as done, of the weight given, that took no time: the
// share done and the time left go by the others.
func (b *Bar) AddFree(weight int64) {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.done++
	b.weight -= weight
}

// Done ends the job well and leaves a line that says how long it took. Only
// the first of Done, Fail and Drop counts.
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
	if took < b.r.quiet {
		b.r.end(b, "")
		return
	}
	line := fmt.Sprintf("%s %s: %s in %s", b.r.paint("32", "done"), b.name, b.unit.format(b.done), seconds(took))
	if b.unit == None {
		line = fmt.Sprintf("%s %s in %s", b.r.paint("32", "done"), b.name, seconds(took))
	}
	if b.unit == Bytes && took >= time.Second {
		line += fmt.Sprintf(" (%s/s)", b.unit.format(b.rate(took)))
	}
	b.r.end(b, line+"\n")
}

// Fail ends the job with its cause. Only the first of Done, Fail and Drop
// counts.
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
	b.r.end(b, fmt.Sprintf("%s %s: %v\n", b.r.paint("31", "failed"), b.name, err))
}

// Drop ends the job without a line: it was cancelled, or the caller
// reports the failure. Only the first of Done, Fail and Drop counts.
func (b *Bar) Drop() {
	if b == nil {
		return
	}
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	if b.ended {
		return
	}
	b.ended = true
	b.r.end(b, "")
}

// End is Done where err is nil, else Drop: the caller returns err.
func (b *Bar) End(err error) {
	if err != nil {
		b.Drop()
		return
	}
	b.Done()
}

// rate is the amount a second over took, which is longer than zero.
func (b *Bar) rate(took time.Duration) int64 {
	return int64(float64(b.done-b.base) / took.Seconds())
}

// leastShown is the least share done, in percent, that a time left is
// estimated from: before it, counted things of different sizes mislead. Bytes
// pass at a steady rate.
const leastShown = 20

// status is the job's line while it runs.
func (b *Bar) status(now time.Time) string {
	var s strings.Builder
	s.WriteString(b.name)
	if b.unit != None {
		s.WriteString("  ")
		s.WriteString(b.unit.format(b.done))
	}
	done, total := b.done, b.total
	if b.weight > 0 {
		done, total = b.weightDone, b.weight
	}
	share := percent(done, total)
	if b.total > 0 {
		fmt.Fprintf(&s, " of %s  %d %%", b.unit.format(b.total), share)
	}
	took := now.Sub(b.began)
	if took < time.Second {
		return s.String()
	}
	if b.unit == Bytes {
		fmt.Fprintf(&s, "  %s/s", b.unit.format(b.rate(took)))
	} else {
		fmt.Fprintf(&s, "  %s", seconds(took))
	}
	if made := done - b.base; made > 0 && total > done && (b.unit == Bytes || share >= leastShown) {
		left := time.Duration(float64(took) / float64(made) * float64(total-done))
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

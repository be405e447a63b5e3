// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	xterm "golang.org/x/term"
)

const (
	// redrawEvery keeps live lines smooth without flooding a slow terminal.
	redrawEvery = 100 * time.Millisecond
	// plainEvery is how often a running job speaks where nothing is live.
	plainEvery = 15 * time.Second
	// defaultWidth serves where the terminal does not report its width.
	defaultWidth = 80
)

// Reporter writes the progress of any number of jobs to one writer.
type Reporter struct {
	mu     sync.Mutex
	quiet  time.Duration // see Patient
	w      io.Writer
	live   bool
	colour bool
	width  func() int
	now    func() time.Time

	bars  []*Bar        // running jobs, oldest first
	drawn int           // live lines now on the screen
	stop  chan struct{} // ends the ticker; nil while none runs
}

// New returns a Reporter that writes to w: with live lines if w is a terminal
// that can redraw (TERM is not "dumb", CI is not set), with plain lines
// otherwise. NO_COLOR turns colours off.
func New(w io.Writer) *Reporter {
	r := &Reporter{w: w, now: time.Now, width: func() int { return defaultWidth }}
	f, ok := w.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return r
	}
	r.width = func() int {
		if n, _, err := xterm.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
		return defaultWidth
	}
	r.live = os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
	r.colour = r.live && os.Getenv("NO_COLOR") == ""
	return r
}

// Patient has jobs show nothing until they have run for so long: one that ends well before leaves no line.
func (r *Reporter) Patient(quiet time.Duration) *Reporter {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.quiet = quiet
	}
	return r
}

// Printf writes a message on lines of its own, above the live ones. A missing
// newline at the end is added.
func (r *Reporter) Printf(format string, args ...any) {
	if r == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(text)
}

// Bar starts the line of a job called name. total is the amount of work in
// unit, or 0 where it is not known. The job ends with Done, Fail or Drop.
func (r *Reporter) Bar(name string, total int64, unit Unit) *Bar {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	b := &Bar{r: r, name: name, total: total, unit: unit, began: now, spoke: now}
	r.bars = append(r.bars, b)
	if r.stop == nil {
		r.stop = make(chan struct{})
		go r.tick(r.stop)
	}
	if r.live {
		r.write("")
	}
	return b
}

// Step starts the line of a job of which only the time is shown.
func (r *Reporter) Step(name string) *Bar { return r.Bar(name, 0, None) }

// tick redraws live lines and lets quiet jobs speak while any job runs.
func (r *Reporter) tick(stop chan struct{}) {
	t := time.NewTicker(redrawEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			r.mu.Lock()
			r.refresh()
			r.mu.Unlock()
		}
	}
}

// refresh shows where the running jobs stand. The caller holds the lock.
func (r *Reporter) refresh() {
	if r.live {
		r.write("")
		return
	}
	now := r.now()
	for _, b := range r.bars {
		if now.Sub(b.spoke) >= plainEvery {
			b.spoke = now
			r.write(b.status(now) + "\n")
		}
	}
}

// write replaces the live lines by text, which is empty or ends in a newline,
// and draws them again below it, in one call of Write so that nothing tears.
// The caller holds the lock.
func (r *Reporter) write(text string) {
	r.put(r.erase() + text + r.draw())
}

// erase is what takes the live lines off the screen. The caller holds the lock.
func (r *Reporter) erase() string {
	if r.drawn == 0 {
		return ""
	}
	sequence := fmt.Sprintf("\x1b[%dA\r\x1b[J", r.drawn)
	r.drawn = 0
	return sequence
}

// draw is what puts the live lines on the screen. The caller holds the lock.
func (r *Reporter) draw() string {
	if !r.live {
		return ""
	}
	var s strings.Builder
	now, width := r.now(), r.width()
	for _, b := range r.bars {
		if now.Sub(b.began) < r.quiet {
			continue
		}
		s.WriteString(clip(b.status(now), width-1))
		s.WriteByte('\n')
		r.drawn++
	}
	return s.String()
}

// put writes text, if there is any. Progress is a courtesy: work goes on if
// the reader has gone away.
func (r *Reporter) put(text string) {
	if text != "" {
		_, _ = io.WriteString(r.w, text)
	}
}

// Through returns a writer to w that takes the live lines off the screen while
// it writes, for a w that may be the same terminal. What is written ends in a
// newline.
func (r *Reporter) Through(w io.Writer) io.Writer {
	if r == nil {
		return w
	}
	return through{r, w}
}

type through struct {
	r *Reporter
	w io.Writer
}

func (t through) Write(p []byte) (int, error) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.r.put(t.r.erase())
	n, err := t.w.Write(p)
	t.r.put(t.r.draw())
	return n, err
}

// end takes b off the running jobs and leaves line behind, which is empty or
// ends in a newline. The caller holds the lock.
func (r *Reporter) end(b *Bar, line string) {
	for i, other := range r.bars {
		if other == b {
			r.bars = append(r.bars[:i], r.bars[i+1:]...)
			break
		}
	}
	if len(r.bars) == 0 && r.stop != nil {
		close(r.stop)
		r.stop = nil
	}
	r.write(line)
}

// paint wraps s in an SGR colour where colours are wanted.
func (r *Reporter) paint(sgr, s string) string {
	if !r.colour {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// clip cuts s, which has no escape sequences, to n columns.
func clip(s string, n int) string {
	if n < 1 {
		return ""
	}
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n])
	}
	return s
}

// SPDX-License-Identifier: Apache-2.0

package term

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is a time that only the test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// screen is a writer that also plays a terminal: it understands cursor up and
// clear to the end, the two sequences that live lines use.
type screen struct {
	mu    sync.Mutex
	lines []string
	raw   strings.Builder
}

var upAndClear = regexp.MustCompile(`^\x1b\[(\d+)A\r\x1b\[J`)

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.Write(p)
	text := string(p)
	if m := upAndClear.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		s.lines = s.lines[:len(s.lines)-n]
		text = text[len(m[0]):]
	}
	if text == "" {
		return len(p), nil
	}
	s.lines = append(s.lines, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
	return len(p), nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func reporter(live bool) (*Reporter, *screen, *clock) {
	c, s := &clock{t: time.Unix(1000, 0)}, &screen{}
	r := New(s)
	r.now, r.live = c.now, live
	return r, s, c
}

// refresh is what the ticker does, at a time of the test's choosing.
func refresh(r *Reporter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh()
}

func TestPlainLinesNowAndThen(t *testing.T) {
	r, s, c := reporter(false)
	b := r.Bar("wheel", 4_000_000, Bytes)
	b.Add(1_000_000)
	c.forward(time.Second)
	refresh(r)
	if got := s.text(); got != "" {
		t.Fatalf("spoke too early: %q", got)
	}
	c.forward(19 * time.Second)
	refresh(r)
	refresh(r)
	b.Add(3_000_000)
	c.forward(20 * time.Second)
	b.Done()
	want := "wheel  1.0 MB of 4.0 MB  25 %  50.0 kB/s  1 min 0 s left\n" +
		"done wheel: 4.0 MB in 40 s (100 kB/s)"
	if got := s.text(); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(s.raw.String(), "\x1b") {
		t.Fatal("an escape sequence outside a terminal")
	}
}

func TestLiveLinesAreNotTorn(t *testing.T) {
	r, s, c := reporter(true)
	a := r.Bar("a", 10, Count)
	b := r.Bar("b", 0, Bytes)
	a.Set(5)
	c.forward(2 * time.Second)
	r.Printf("hello\nworld")
	if got, want := s.text(), "hello\nworld\na  5 of 10  50 %  2.0 s  2.0 s left\nb  0 B  0 B/s"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	a.Done()
	b.Fail(errors.New("cut"))
	b.Done()
	if got, want := s.text(), "hello\nworld\ndone a: 5 in 2.0 s\nfailed b: cut"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if r.stop != nil {
		t.Fatal("the ticker outlives the last job")
	}
}

func TestLiveLineFitsTheTerminal(t *testing.T) {
	r, s, _ := reporter(true)
	r.width = func() int { return 20 }
	b := r.Bar(strings.Repeat("långt", 10), 1, Bytes)
	if n := len([]rune(s.text())); n != 19 {
		t.Fatalf("line of %d columns on a terminal of 20", n)
	}
	b.Done()
}

func TestRateRestartsWhenARetryGoesBack(t *testing.T) {
	r, s, c := reporter(false)
	b := r.Bar("x", 0, Bytes)
	b.Set(1_000_000)
	c.forward(10 * time.Second)
	b.Set(0)
	b.Set(1000)
	c.forward(time.Second)
	b.Done()
	if got, want := s.text(), "done x: 1.0 kB in 1.0 s (1.0 kB/s)"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestWeighedWorkAndItsEstimate(t *testing.T) {
	r, s, c := reporter(true)
	b := r.Bar("compile", 4, Count)
	b.Weigh(1000)
	b.AddWeighed(190)
	c.forward(10 * time.Second)
	refresh(r)
	if got, want := s.text(), "compile  1 of 4  19 %  10 s"; got != want {
		t.Errorf("got %q, want %q: too early for an estimate", got, want)
	}
	b.AddFree(200) // of the other 800
	b.AddWeighed(210)
	refresh(r)
	if got, want := s.text(), "compile  3 of 4  50 %  10 s  10 s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.AddWeighed(400)
	b.Done()
	if got, want := s.text(), "done compile: 4 in 10 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStepShowsItsTimeAlone(t *testing.T) {
	r, s, c := reporter(true)
	b := r.Step("go vet")
	c.forward(3 * time.Second)
	refresh(r)
	if got, want := s.text(), "go vet  3.0 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.End(nil)
	if got, want := s.text(), "done go vet in 3.0 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The caller that drops a job reports its failure, where there is one.
func TestDroppedJobLeavesNoLine(t *testing.T) {
	for _, live := range []bool{true, false} {
		r, s, _ := reporter(live)
		b, other := r.Bar("cancelled", 4, Count), r.Step("failed")
		b.Drop()
		b.Done()
		other.End(errors.New("reported elsewhere"))
		if got := s.text(); got != "" {
			t.Errorf("live %t: left %q", live, got)
		}
		if r.stop != nil {
			t.Error("the ticker outlives the last job")
		}
	}
}

// Results that share the terminal with live lines stand above them.
func TestThrough(t *testing.T) {
	r, s, _ := reporter(true)
	b := r.Step("test")
	if _, err := io.WriteString(r.Through(s), "ok\n"); err != nil {
		t.Fatal(err)
	}
	if got, want := s.text(), "ok\ntest"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Drop()
	if got, want := s.text(), "ok"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var none *Reporter
	if _, err := io.WriteString(none.Through(s), "no reporter\n"); err != nil || !strings.Contains(s.text(), "no reporter") {
		t.Errorf("got %q, %v", s.text(), err)
	}
}

func TestNilIsSilent(t *testing.T) {
	var r *Reporter
	r.Printf("x")
	b := r.Bar("x", 1, Count)
	b.Add(1)
	b.Set(1)
	b.SetTotal(2)
	b.Done()
	b.Fail(errors.New("x"))
	b.Weigh(1)
	b.AddWeighed(1)
	b.AddFree(1)
	b.Drop()
	r.Step("x").End(nil)
}

func TestManyGoroutines(t *testing.T) {
	r, s, _ := reporter(true)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			b := r.Bar("job", 100, Count)
			for range 100 {
				b.Add(1)
			}
			r.Printf("said")
			b.Done()
		})
	}
	wg.Wait()
	if n := strings.Count(s.text(), "done job: 100 in"); n != 8 {
		t.Fatalf("%d of 8 jobs ended on the screen:\n%s", n, s.text())
	}
	if n := strings.Count(s.text(), "said"); n != 8 {
		t.Fatalf("%d of 8 messages kept", n)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 99_949: "99.9 kB", 99_950: "100 kB",
		999_499: "999 kB", 999_500: "1.0 MB", 61_601_415: "61.6 MB", 5_000_000_000: "5.0 GB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 s", 9940 * time.Millisecond: "9.9 s", 9960 * time.Millisecond: "10 s",
		59 * time.Second: "59 s", 60 * time.Second: "1 min 0 s", 200 * time.Second: "3 min 20 s",
		125 * time.Minute: "2 h 5 min",
	} {
		if got := seconds(d); got != want {
			t.Errorf("seconds(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPercentIsFullOnlyAtTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 1<<50).Draw(t, "total")
		done := rapid.Int64Range(0, total).Draw(t, "done")
		p := percent(done, total)
		if p < 0 || p > 100 || (p == 100 && done*1000 < total*999) {
			t.Fatalf("percent(%d, %d) = %d", done, total, p)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// testLog reads what go test -json writes, and prints it as go test does
// without: a line for each package, and before that of one that failed all
// that its failed tests wrote. At the end it prints what was skipped and why,
// and the number of tests that passed and failed. A test that has subtests is
// counted by those; a package that fails without a test that failed, since it
// does not compile perhaps, counts as one.
type testLog struct {
	out     io.Writer
	bar     *term.Bar         // counts the packages
	line    []byte            // of the input, not whole yet
	said    map[string][]said // by package, in order
	skipped map[skip]int
	parents map[testName]bool // tests that have subtests

	packages, passed, failed int
	failedIn                 map[string]bool // packages with a failed test
}

// testName is a test of a package.
type testName struct{ pkg, name string }

// said is a piece of output, of a test or of the package itself.
type said struct{ test, text string }

// skip is why tests of a package were skipped.
type skip struct{ reason, pkg string }

// testEvent is one line of go test -json.
type testEvent struct {
	Action, Package, Test, Output string
}

func newTestLog(out io.Writer, bar *term.Bar) *testLog {
	return &testLog{out: out, bar: bar, said: make(map[string][]said), skipped: make(map[skip]int), parents: make(map[testName]bool),
		failedIn: make(map[string]bool)}
}

// Write takes any part of the input.
func (l *testLog) Write(p []byte) (int, error) {
	l.line = append(l.line, p...)
	for {
		line, rest, whole := bytes.Cut(l.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.line = rest
		if err := l.read(line); err != nil {
			return 0, err
		}
	}
}

func (l *testLog) read(line []byte) error {
	var e testEvent
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		return l.print(string(line) + "\n")
	}
	ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
	if ended && e.Test != "" {
		l.count(e)
	}
	switch {
	case e.Action == "build-output":
		return l.print(e.Output)
	case e.Action == "output":
		l.said[e.Package] = append(l.said[e.Package], said{e.Test, e.Output})
	case ended && e.Test == "":
		return l.endPackage(e)
	case ended && e.Action != "fail":
		l.endTest(e)
	}
	return nil
}

// count counts a test that ended. Subtests end before the test that has them.
func (l *testLog) count(e testEvent) {
	if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
		// A name may itself have slashes; then no test has the shorter name.
		for ; i >= 0; i = strings.LastIndexByte(e.Test[:i], '/') {
			l.parents[testName{e.Package, e.Test[:i]}] = true
		}
	}
	if l.parents[testName{e.Package, e.Test}] {
		return
	}
	switch e.Action {
	case "pass":
		l.passed++
	case "fail":
		l.failed++
		l.failedIn[e.Package] = true
	}
}

// endTest forgets what a test that did not fail said.
func (l *testLog) endTest(e testEvent) {
	if e.Action == "skip" {
		l.skipped[skip{skipReason(l.said[e.Package], e.Test), e.Package}]++
	}
	l.said[e.Package] = slices.DeleteFunc(l.said[e.Package], func(s said) bool { return s.test == e.Test })
}

// endPackage prints what is left: all that failed tests wrote, and the line of
// the package.
func (l *testLog) endPackage(e testEvent) error {
	var text strings.Builder
	last := ""
	for _, s := range l.said[e.Package] {
		if s.test == "" && packageLine.MatchString(s.text) {
			last = s.text
		} else if e.Action == "fail" {
			text.WriteString(s.text)
		}
	}
	delete(l.said, e.Package)
	l.bar.Add(1)
	if e.Action != "skip" { // a package without tests
		l.packages++
	}
	if e.Action == "fail" && !l.failedIn[e.Package] {
		l.failed++
	}
	return l.print(text.String() + last)
}

// finish prints what is still to be printed. Where go test itself was ended,
// that is also the output of tests that did not come to their end.
func (l *testLog) finish() error {
	var text strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(l.said)) {
		for _, s := range l.said[pkg] {
			text.WriteString(s.text)
		}
	}
	if len(l.line) > 0 {
		text.Write(append(l.line, '\n'))
	}
	return l.print(text.String() + l.summary())
}

// summary has a line for each reason, "skipped: no GPU: 14 tests in wrapper",
// and a last one: "48 packages: 1204 passed, 0 failed, 67 skipped".
func (l *testLog) summary() string {
	skips := slices.SortedFunc(maps.Keys(l.skipped), func(a, b skip) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.pkg, b.pkg))
	})
	var text strings.Builder
	skipped := 0
	for i, s := range skips {
		skipped += l.skipped[s]
		if i == 0 || s.reason != skips[i-1].reason {
			fmt.Fprintf(&text, "skipped: %s: ", s.reason)
		} else {
			text.WriteString(", ")
		}
		tests := "tests"
		if l.skipped[s] == 1 {
			tests = "test"
		}
		fmt.Fprintf(&text, "%d %s in %s", l.skipped[s], tests, strings.TrimPrefix(s.pkg, module))
		if i+1 == len(skips) || s.reason != skips[i+1].reason {
			text.WriteString("\n")
		}
	}
	fmt.Fprintf(&text, "%d packages: %d passed, %d failed, %d skipped\n", l.packages, l.passed, l.failed, skipped)
	return text.String()
}

func (l *testLog) print(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(l.out, text)
	return err
}

// module is what the names of all packages begin with.
const module = "github.com/sparsek/sparsek/"

var (
	packageLine = regexp.MustCompile(`^(ok  |FAIL|\?   )\t`)
	// What a test logs stands behind its place; the reason of Skip comes last.
	saidAt = regexp.MustCompile(`^\s+[^\s:]+\.go:\d+: (.*)\n`)
)

// skipReason is the last that a test said, without the word that the summary
// has already.
func skipReason(all []said, test string) string {
	reason := "no reason given"
	for _, s := range all {
		if m := saidAt.FindStringSubmatch(s.text); s.test == test && m != nil {
			reason = strings.TrimPrefix(m[1], "skipped: ")
		}
	}
	return reason
}

// shared lets several goroutines write to w.
type shared struct {
	mu *sync.Mutex
	w  io.Writer
}

func (s shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

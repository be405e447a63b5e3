// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Keys, records, texts, and texts that were cut or damaged.
func TestTuningText(t *testing.T) {
	if out, err := exec.Command(tuning.need(t).check, buildID[:16]).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Which kernel a plan has whose sums must not depend on the number of columns.
func TestChoice(t *testing.T) { execute(t, tuning.need(t).choice) }

// Writers lose nothing of each other, and readers see whole files alone.
func TestTuningWritersAtOnce(t *testing.T) {
	p := tuning.need(t)
	path := filepath.Join(t.TempDir(), "tuning.txt")
	watch := exec.Command(p.program, "watch", path)
	end, err := watch.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	watch.Stdout = &output
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	const writers = 3
	each := rounds(60, 1000)
	failed := make(chan error, writers)
	for i := range writers {
		go func() {
			lines, err := p.run("remember", path, strconv.Itoa(i*each), strconv.Itoa(each))
			for _, line := range lines {
				if strings.HasPrefix(line, "warning") {
					t.Error(line)
				}
			}
			failed <- err
		}()
	}
	for range writers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	end.Close()
	if err := watch.Wait(); err != nil {
		t.Errorf("a reader: %v: %s", err, output.String())
	}
	p.expect(t, "after all", path, writers*each)
	if left := beside(t, path); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestTuningThreads(t *testing.T) {
	p := tuning.need(t)
	each := rounds(20, 50)
	if os.Getenv("SPARSEK_LONG") != "" {
		watched := &programs{dir: t.TempDir()}
		if err := watched.compile("-O1", "-g1", "-fsanitize=thread"); err != nil {
			t.Fatal(err)
		}
		p = watched
	}
	path := filepath.Join(t.TempDir(), "tuning.txt")
	if _, err := p.run("threads", path, strconv.Itoa(each)); err != nil {
		t.Fatal(err)
	}
	tuning.need(t).expect(t, "after all", path, 4*each)
}

// goodLines are the lines of a file that are records, and of what was set
// aside beside it.
func goodLines(t *testing.T, p *programs, path string) []int {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, file := range files {
		if strings.HasSuffix(file, ".new") { // what is not finished does not count
			continue
		}
		s, err := p.list(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.numbers...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

const somethingElse = "something else\n"

// eachCall runs test with a file to begin with, for each system call of a
// writer, until there is none of that number.
func eachCall(t *testing.T, test func(t *testing.T, p *programs, path, begin, call string) (hit bool)) {
	p := tuning.need(t)
	whole := filepath.Join(t.TempDir(), "tuning.txt")
	p.remember(t, whole, 0, 3)
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"whole": string(text), "damaged": string(text) + "and something else", "foreign": somethingElse}
	for _, begin := range []string{"absent", "whole", "damaged", "foreign"} {
		t.Run(begin, func(t *testing.T) {
			for call := 1; ; call++ {
				path := filepath.Join(t.TempDir(), "folder", "tuning.txt")
				if begin != "absent" {
					write(t, path, texts[begin])
				}
				hit := test(t, p, path, begin, strconv.Itoa(call))
				if t.Failed() {
					t.Fatalf("at call %d", call)
				}
				if !hit {
					if call < 8 {
						t.Errorf("a writer makes only %d calls", call-1)
					}
					return
				}
			}
		})
	}
}

// write makes a file, and its folder.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

// after fails unless the file is what it was or what it should become, and
// what was there is there still. A file that could not be opened is set aside.
func after(t *testing.T, p *programs, path, begin string, forbidden bool) {
	t.Helper()
	s, err := p.list(path)
	if err != nil {
		t.Fatal(err)
	}
	old := upTo(3)
	if begin == "absent" || begin == "foreign" {
		old = nil
	}
	isOld := s.state == begin && slices.Equal(s.numbers, old)
	isNew := s.state == "whole" && slices.Equal(s.numbers, append(slices.Clone(old), 100))
	isInstead := forbidden && s.state == "whole" && slices.Equal(s.numbers, []int{100})
	if !isOld && !isNew && !isInstead {
		t.Errorf("the file is neither old nor new: %+v", s)
	}
	if lines := goodLines(t, p, path); len(lines) < len(old) {
		t.Errorf("of %v is left %v", old, lines)
	}
	if begin == "foreign" && isNew {
		kept, err := filepath.Glob(path + ".set-aside-*")
		if err != nil || len(kept) != 1 {
			t.Fatalf("set aside is %q, %v", kept, err)
		}
		if text, err := os.ReadFile(kept[0]); err != nil || string(text) != somethingElse {
			t.Errorf("set aside is %q, %v", text, err)
		}
	}
}

// kill -9 in the middle of each system call.
func TestTuningKilledAtEachCall(t *testing.T) {
	eachCall(t, func(t *testing.T, p *programs, path, begin, call string) bool {
		_, err := p.run("remember", path, "100", "1", call, "0")
		after(t, p, path, begin, false)
		// The next writer is not hindered, and leaves only what was set aside.
		if _, err := p.run("remember", path, "100", "1"); err != nil {
			t.Error(err)
		}
		for _, name := range beside(t, path) {
			if !strings.Contains(name, ".set-aside-") {
				t.Errorf("left behind: %s", name)
			}
		}
		return err != nil
	})
}

// Each system call fails: as on a full disk, or on one that is out of order.
func TestTuningEachCallFails(t *testing.T) {
	codes := []syscall.Errno{syscall.ENOSPC, syscall.EACCES, syscall.EIO, syscall.EMFILE, syscall.ENOLCK}
	for _, code := range codes[:rounds(2, len(codes))] {
		t.Run(code.Error(), func(t *testing.T) {
			missed := 0
			eachCall(t, func(t *testing.T, p *programs, path, begin, call string) bool {
				lines, err := p.run("remember", path, "100", "1", call, strconv.Itoa(int(code)))
				if err != nil {
					t.Fatal(err)
				}
				after(t, p, path, begin, code == syscall.EACCES)
				s, err := p.list(path)
				if err != nil {
					t.Fatal(err)
				}
				isKept := slices.Contains(s.numbers, 100)
				if !isKept && !strings.HasPrefix(lines[0], "warning: measurements are not kept: ") {
					t.Errorf("nothing was kept, and it said %q", lines)
				}
				if _, err := os.Stat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("an unfinished file was left behind: %v", err)
				}
				// Some calls may fail and nothing is lost by it; behind the last there are none that do.
				if missed++; !isKept {
					missed = 0
				}
				return missed < 8
			})
		})
	}
}

// Writers are killed at any time: what they said is kept is kept.
func TestTuningKilledWriters(t *testing.T) {
	p := tuning.need(t)
	path := filepath.Join(t.TempDir(), "tuning.txt")
	p.remember(t, path, 0, 200) // so that a write takes its time
	kept := 200
	for range rounds(20, 500) {
		cmd := exec.Command(p.program, "remember", path, strconv.Itoa(kept), "1000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rand.IntN(30))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() != "kept "+strconv.Itoa(kept) {
				t.Errorf("%q, want %d kept", lines.Text(), kept)
			}
			kept++
		}
		timer.Stop()
		_ = cmd.Wait() // it was killed
		s, err := p.list(path)
		if err != nil {
			t.Fatal(err)
		}
		// The last may have been kept and not reported.
		if s.state != "whole" || !slices.Equal(s.numbers, upTo(kept)) && !slices.Equal(s.numbers, upTo(kept+1)) {
			t.Fatalf("%s with %d records, want %d: %s", s.state, len(s.numbers), kept, s.fault)
		}
		kept = len(s.numbers)
	}
}

// A process that is stopped while it holds the lock does not block others for ever.
func TestTuningLockIsHeld(t *testing.T) {
	p := tuning.need(t)
	path := filepath.Join(t.TempDir(), "tuning.txt")
	lock, err := os.Create(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	lines, err := p.run("lock", path)
	if err != nil || !strings.Contains(lines[0], path+".lock: another process has held the lock for 50 ms") {
		t.Errorf("%q, %v", lines, err)
	}
	if left := beside(t, path); !slices.Equal(left, []string{"tuning.txt.lock"}) {
		t.Errorf("another's lock was removed: %q", left)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, err := p.run("lock", path); err != nil || lines[0] != "held" {
		t.Errorf("%q, %v", lines, err)
	}
	if left := beside(t, path); len(left) > 0 {
		t.Errorf("the lock was left behind: %q", left)
	}
}

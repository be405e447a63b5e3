// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/testdisk"
)

// tasks are what such a process does, with the program and an empty folder.
var tasks = map[string]func(program, dir string) error{
	"full":      onFullDisk,
	"read-only": onReadOnlyDisk,
}

func runOnOwnDisk(t *testing.T, task string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, tuning.need(t).program, t.TempDir())
	cmd.Env = append(os.Environ(), childTask+"="+task)
	testdisk.Run(t, cmd)
}

// warned fails unless a record was not kept, with a warning that states the
// cause and the fix, and the file holds the records [0, count) as before.
func warned(p *programs, path string, count int, cause string) error {
	lines, err := p.run("remember", path, strconv.Itoa(count), "1")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(lines[0], "warning") || !strings.Contains(lines[0], cause) || !strings.Contains(lines[0], "SPARSEK_TUNING_CACHE=off") {
		return fmt.Errorf("it said %q, want %q", lines, cause)
	}
	return holds(p, path, count)
}

func holds(p *programs, path string, count int) error {
	s, err := p.list(path)
	if err != nil {
		return err
	}
	if count > 0 && s.state != "whole" || !slices.Equal(s.numbers, upTo(count)) {
		return fmt.Errorf("the file is %+v, want %d records", s, count)
	}
	return nil
}

func onFullDisk(program, dir string) error {
	if err := testdisk.Mount(dir, "size=64k", 0); err != nil {
		return err
	}
	p, path := &programs{program: program}, filepath.Join(dir, "tuning.txt")
	kept := 0
	for ; ; kept++ {
		lines, err := p.run("remember", path, strconv.Itoa(kept), "1")
		if err != nil {
			return err
		}
		if strings.HasPrefix(lines[0], "warning") {
			break
		}
	}
	if kept < 20 {
		return fmt.Errorf("the disk is full after %d records", kept)
	}
	if err := warned(p, path, kept, "No space left on device: free some"); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		return fmt.Errorf("left behind: %v, %w", entries, err)
	}
	if err := testdisk.Mount(dir, "size=1m", syscall.MS_REMOUNT); err != nil {
		return err
	}
	if _, err := p.run("remember", path, strconv.Itoa(kept), "1"); err != nil {
		return err
	}
	return holds(p, path, kept+1)
}

func onReadOnlyDisk(program, dir string) error {
	if err := testdisk.Mount(dir, "size=1m", 0); err != nil {
		return err
	}
	p, path := &programs{program: program}, filepath.Join(dir, "tuning.txt")
	if _, err := p.run("remember", path, "0", "2"); err != nil {
		return err
	}
	if err := testdisk.Mount(dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY); err != nil {
		return err
	}
	return errors.Join(warned(p, path, 2, "Read-only file system"),
		warned(p, filepath.Join(dir, "new", "tuning.txt"), 0, "Read-only file system"))
}

func TestTuningOnAFullDisk(t *testing.T) { runOnOwnDisk(t, "full") }

func TestTuningOnAReadOnlyDisk(t *testing.T) { runOnOwnDisk(t, "read-only") }

// A limit on the size of files ends a process that writes beyond it.
func TestTuningUnderALimit(t *testing.T) {
	p := tuning.need(t)
	path := filepath.Join(t.TempDir(), "tuning.txt")
	p.remember(t, path, 0, 10)
	out, err := exec.Command("sh", "-c", `ulimit -f 1 && exec "$0" remember "$1" 10 1`, p.program, path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ulimit -f") {
		t.Errorf("%v, %s", err, out)
	}
	p.expect(t, "under a limit", path, 10)
}

// What is no file for it is left alone; what is no tuning file is set aside.
func TestTuningOtherFiles(t *testing.T) {
	p := tuning.need(t)
	dir := t.TempDir()
	refused := func(path, cause string) {
		t.Helper()
		lines, err := p.run("remember", path, "0", "1")
		if err != nil || !strings.Contains(lines[0], "not kept") || !strings.Contains(lines[0], cause) {
			t.Errorf("%s: %q, %v, want %q", path, lines, err, cause)
		}
	}
	refused(dir, "it is a folder: name a file in it")
	refused(os.DevNull, "no ordinary file")
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is %v, %v", info, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(filepath.Join(file, "tuning.txt"), "Not a directory")
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	refused(filepath.Join(dir, "dangling"), "following the link")

	// Twice in one second, so that the second name has a number.
	for range 2 {
		if err := os.WriteFile(file, []byte("my own text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		lines, err := p.run("remember", file, "0", "1")
		if err != nil || !strings.Contains(lines[0], "its first line is not") || !strings.Contains(lines[0], "it is now "+file+".set-aside-") {
			t.Errorf("%q, %v", lines, err)
		}
	}
	p.expect(t, "after another file", file, 1)
	kept, err := filepath.Glob(file + ".set-aside-*")
	if err != nil || len(kept) != 2 {
		t.Errorf("set aside are %q, %v", kept, err)
	}

	// A link stays one, and what it names keeps its mode.
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Symlink("file", link), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
	p.remember(t, link, 1, 1)
	p.expect(t, "behind a link", file, 2)
	info, err := os.Lstat(link)
	if err != nil || info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
}

func TestTuningClear(t *testing.T) {
	p := tuning.need(t)
	path := filepath.Join(t.TempDir(), "tuning.txt")
	expect := func(when, count, warning string) {
		t.Helper()
		lines, err := p.run("clear", path)
		if err != nil || lines[0] != count || !strings.Contains(lines[1], warning) || warning == "" && lines[1] != "" {
			t.Errorf("%s: %q, %v", when, lines, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the file is there: %v", when, err)
		}
	}
	expect("absent", "0", "")
	p.remember(t, path, 0, 3)
	expect("whole", "3", "")
	if left := beside(t, path); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	p.remember(t, path, 0, 3)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text)+"more\n")
	expect("damaged", "3", "1 line is no record, line 5: it is now")
	if left := beside(t, path); len(left) != 1 {
		t.Errorf("set aside are %q", left)
	}
}

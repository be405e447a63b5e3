// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/testdisk"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
)

// childSize is the size of task "full"'s disk in KiB.
const childSize = "SPARSEK_TEST_SIZE"

func mount(dir, options string, flags uintptr) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return testdisk.Mount(dir, options, flags)
}

// helpful fails unless err is about the cache's disk and names the place and the fix.
func helpful(err error, cause error, dir string) error {
	var disk *fetch.DiskError
	switch {
	case err == nil:
		return errors.New("no error")
	case !errors.As(err, &disk) || !errors.Is(err, cause):
		return fmt.Errorf("not a fault of the disk for that cause: %w", err)
	case !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fetch.CacheVariable):
		return fmt.Errorf("says neither where nor what to do: %w", err)
	}
	return nil
}

// onFullDisk prepares on a disk of the size given: that works or says why
// not, and works once the disk has space.
func onFullDisk(opts Options) error {
	size := "size=" + os.Getenv(childSize) + "k"
	if err := mount(opts.CacheDir, size, 0); err != nil {
		return err
	}
	if err := prepared(opts); err != nil {
		if err := helpful(err, syscall.ENOSPC, opts.CacheDir); err != nil {
			return err
		}
	}
	if err := mount(opts.CacheDir, "size=64m", syscall.MS_REMOUNT); err != nil {
		return err
	}
	return prepared(opts)
}

// onReadOnlyDisk prepares on a disk that nothing can be written to.
func onReadOnlyDisk(opts Options) error {
	if err := mount(opts.CacheDir, "size=64m", 0); err != nil {
		return err
	}
	readOnly := func() error { return mount(opts.CacheDir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY) }
	writable := func() error { return mount(opts.CacheDir, "", syscall.MS_REMOUNT) }
	if err := readOnly(); err != nil {
		return err
	}
	if err := helpful(prepared(opts), syscall.EROFS, opts.CacheDir); err != nil {
		return fmt.Errorf("empty: %w", err)
	}
	if err := errors.Join(writable(), prepared(opts), readOnly()); err != nil {
		return err
	}
	opts.Offline = true
	if err := prepared(opts); err != nil {
		return fmt.Errorf("whole: %w", err)
	}
	tools, err := filepath.Glob(filepath.Join(opts.CacheDir, "tree", "*", "cuda", "nvvm", "bin", "cicc"))
	if err != nil || len(tools) != 1 {
		return fmt.Errorf("found %q, %w", tools, err)
	}
	if err := errors.Join(writable(), os.WriteFile(tools[0], []byte("CICC"), 0o755), readOnly()); err != nil {
		return err
	}
	if err := helpful(prepared(opts), syscall.EROFS, opts.CacheDir); err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	return nil
}

func TestDiskFull(t *testing.T) {
	w := newWorld(t)
	w.bulky(t)
	// The archives take some 650 KiB, the tree as much again.
	step := 1600 / rounds(5, 80)
	for size := step; size <= 1600; size += step {
		cmd := w.child(t, "full")
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", childSize, size))
		testdisk.Run(t, cmd)
		if t.Failed() {
			t.Fatalf("with %d KiB", size)
		}
	}
}

func TestReadOnlyCache(t *testing.T) {
	w := newWorld(t)
	testdisk.Run(t, w.child(t, "read-only"))
}

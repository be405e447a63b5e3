// SPDX-License-Identifier: Apache-2.0

// Package testdisk gives a test's process a separate disk that it can fill or make read-only: a tmpfs in a mount
// namespace, which affects no other process and also limits root.
package testdisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// notAllowed is the exit status of a process that may not mount anything.
const notAllowed = 77

var errNotAllowed = errors.New("this process may not mount a disk")

// Run runs a process, a copy of the test program that ends by Exit, where it may Mount, or skips the test.
func Run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == notAllowed, errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC):
		t.Skipf("skipped: %v %s", err, out)
	case err != nil:
		t.Errorf("%v: %s", err, out)
	}
}

// Mount mounts a tmpfs at an existing folder, with its options ("size=64k") and the flags of mount(2).
func Mount(dir, options string, flags uintptr) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	return nil
}

// Exit ends a process that Run started, and reports the result of its work.
func Exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Println(err)
	if errors.Is(err, errNotAllowed) {
		os.Exit(notAllowed)
	}
	os.Exit(1)
}

// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// grace is how long a cancelled group may take to end by itself. It is well
// below the five seconds that mage leaves after an interrupt.
const grace = 2 * time.Second

// A shell's status for a program that a signal ended is this number plus the
// signal's.
const (
	shellSignal = 128
	lastSignal  = 64
)

// Command describes a program to run.
type Command struct {
	Args   []string  // the program (a path, or a name looked up in PATH) and its arguments
	Dir    string    // working directory; empty: this process's own
	Env    []string  // the whole environment; nil: this process's own
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: discarded
	Stderr io.Writer // nil: discarded; may equal Stdout, which keeps the order of the two
}

// Error is a program that could not be started or that failed.
type Error struct {
	Program string // base name
	Code    int    // exit status; -1 where it did not start or a signal ended it
	Stderr  string // its standard error, if Output ran it
	Err     error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.Program, e.Err)
	if e.Stderr != "" {
		text += "\n" + e.Stderr
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Signal is the signal that ended the program, or a child of it whose signal
// it reported as shells do, with a status of 128 or more; 0 where there was
// none.
func (e *Error) Signal() syscall.Signal {
	var exit *exec.ExitError
	if errors.As(e.Err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	if e.Code > shellSignal && e.Code <= shellSignal+lastSignal {
		return syscall.Signal(e.Code - shellSignal)
	}
	return 0
}

// Run runs the command and waits for its end. It fails with an *Error, or with
// the context's cause where that was cancelled first; then no process of the
// command's group runs any more.
func (c Command) Run(ctx context.Context) error {
	if len(c.Args) == 0 {
		return errors.New("process: no program given")
	}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		// The leader has ended; this ends the rest of its group.
		_ = signalGroup(cmd, syscall.SIGKILL)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(c.Args[0]), context.Cause(ctx))
		}
	}
	if err == nil {
		return nil
	}
	code := -1
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	return &Error{Program: filepath.Base(c.Args[0]), Code: code, Err: err}
}

// Output runs the command and returns what it wrote to its standard output.
// The fields Stdout and Stderr are not used; an *Error carries what it wrote
// to its standard error.
func (c Command) Output(ctx context.Context) (string, error) {
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run(ctx)
	var failed *Error
	if errors.As(err, &failed) {
		failed.Stderr = string(bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), err
}

// signalGroup signals every process of the group that cmd leads.
func signalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

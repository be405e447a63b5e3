// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOutput(t *testing.T) {
	dir := t.TempDir()
	out, err := Command{Args: []string{"sh", "-c", `pwd; echo "$GREETING" "$1"`, "sh", "$HOME is not expanded"},
		Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "GREETING=hello"}}.Output(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := real + "\nhello $HOME is not expanded\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestFailureCarriesCodeAndStderr(t *testing.T) {
	_, err := Command{Args: []string{"sh", "-c", "echo lost >&2; exit 7"}}.Output(t.Context())
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != 7 || failed.Stderr != "lost" || failed.Program != "sh" {
		t.Fatalf("got %#v", err)
	}
	if !strings.Contains(err.Error(), "lost") {
		t.Errorf("message %q lacks what the program said", err)
	}
}

func TestMissingProgram(t *testing.T) {
	err := Command{Args: []string{"no-such-program-anywhere"}}.Run(t.Context())
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != -1 || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Fatalf("got %v", err)
	}
	if err := (Command{}).Run(t.Context()); err == nil {
		t.Error("an empty command ran")
	}
}

func TestOneWriterKeepsOrder(t *testing.T) {
	var both bytes.Buffer
	err := Command{Args: []string{"sh", "-c", "echo 1; echo 2 >&2; echo 3"}, Stdout: &both, Stderr: &both}.Run(t.Context())
	if err != nil || both.String() != "1\n2\n3\n" {
		t.Fatalf("got %q, %v", both.String(), err)
	}
}

// A grandchild that ignores the polite signal must not survive a cancel.
func TestCancelEndsTheWholeGroup(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user changed his mind")
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(pidFile); err == nil && bytes.HasSuffix(text, []byte("\n")) {
				cancel(cause)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	err := Command{Args: []string{"sh", "-c",
		`(trap "" TERM; exec sleep 600) & echo $! > ` + pidFile + `; exec sleep 600`}}.Run(ctx)
	if !errors.Is(err, cause) {
		t.Fatalf("got %v, want the cause of the cancel", err)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	const patience = time.Minute // far more than a signal takes
	for alive, began := true, time.Now(); alive; {
		if time.Since(began) > patience {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d of the group lives on %v after the command was cancelled", pid, patience)
		}
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		// A zombie has ended: its new parent has only not waited for it yet.
		zombie := err == nil && strings.Contains(string(state), ") Z ")
		alive = !zombie && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
		time.Sleep(5 * time.Millisecond)
	}
}

func TestSignal(t *testing.T) {
	for script, want := range map[string]syscall.Signal{
		"kill -SEGV $$": syscall.SIGSEGV,
		"exit 137":      syscall.SIGKILL, // as a shell reports a child's end
		"exit 1":        0,
		"exit 255":      0,
	} {
		var failed *Error
		if err := (Command{Args: []string{"sh", "-c", script}}).Run(t.Context()); !errors.As(err, &failed) || failed.Signal() != want {
			t.Errorf("%s: %v, signal %v, want %v", script, err, failed.Signal(), want)
		}
	}
	if got := (&Error{Code: -1, Err: errors.New("not started")}).Signal(); got != 0 {
		t.Errorf("not started: %v", got)
	}
}

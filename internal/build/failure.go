// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// resumes is the end of a message about a failure that is not the source's fault.
const resumes = "; then build again: it goes on from what was finished"

// compileError reports why u has no object: the file and its kernel first, then
// what to do where the cause is not the source, then all that the compiler wrote.
func (b *builder) compileError(u unit, err error, log string) error {
	what := u.source
	if u.kernel != "" {
		what += " (kernel " + u.kernel + ")"
	}
	var failed *process.Error
	if !errors.As(err, &failed) {
		return fmt.Errorf("%s: not compiled: %w", what, err)
	}
	reason := diagnose(failed, log, u.memory())
	if reason == "" {
		reason = "does not compile"
		if b.launcher.blames(u, log) {
			reason += fmt.Sprintf("; %s may be to blame: %s=off leaves it out", b.launcher.name(), LauncherVariable)
		}
	}
	return withLog(fmt.Errorf("%s: %s: %w", what, reason, err), log)
}

// linkError reports why there is no library.
func linkError(library string, err error, log string) error {
	reason := "does not link"
	var failed *process.Error
	if errors.As(err, &failed) {
		if found := diagnose(failed, log, 0); found != "" {
			reason = found
		}
	}
	return withLog(fmt.Errorf("%s: %s: %w", library, reason, err), log)
}

// withLog appends the output of a program to the error.
func withLog(err error, log string) error {
	if log = strings.TrimRight(log, "\n"); log == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, log)
}

// Messages of compilers about exhausted resources, or about their own failures.
// nvcc's parts report signals as shells do, g++ in words.
var (
	saysDiskFull = regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`)
	saysNoMemory = regexp.MustCompile(`(?i)\bout of memory\b|virtual memory exhausted|cannot allocate memory|std::bad_alloc|` +
		`fatal error: killed signal terminated program|resource temporarily unavailable`)
	saysCrashed = regexp.MustCompile(`(?i)internal compiler error|internal error\b|signal terminated program|` +
		`segmentation fault|bus error|illegal instruction|stack overflow`)
)

// diagnose returns the cause, with the fix, of a failure of a compiler or
// linker that is not the source's fault; it is empty where the source seems to
// be wrong. memory is what the program may need, in bytes, 0 for little.
func diagnose(failed *process.Error, log string, memory int64) string {
	signal := failed.Signal()
	need := ""
	if memory > 0 {
		need = fmt.Sprintf("; it takes up to %s for this file", term.FormatBytes(memory))
	}
	switch {
	case saysDiskFull.MatchString(log), isDiskFull(failed.Err):
		return "the disk is full: free some space for build/ and for the folder of temporary files" + resumes
	case signal == syscall.SIGKILL, saysNoMemory.MatchString(log), isNoMemory(failed.Err):
		return "out of memory, or killed for want of it" + need + ": end other programs, give the machine or its container " +
			"more memory, or compile one file at a time with GOMAXPROCS=1" + resumes
	case signal == syscall.SIGXFSZ || signal == syscall.SIGXCPU:
		return fmt.Sprintf("a limit of the shell (%v) ended it: raise it with ulimit%s", signal, resumes)
	case signal == syscall.SIGTERM || signal == syscall.SIGINT || signal == syscall.SIGHUP || signal == syscall.SIGQUIT:
		return fmt.Sprintf("stopped by a signal from outside (%v)%s", signal, resumes)
	case signal != 0, saysCrashed.MatchString(log):
		return "the compiler crashed; build again: where it crashes at this file each time it is a fault of the compiler " +
			"(take another version of g++, or report it), where it does not, of the machine's memory or disk"
	}
	return ""
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isNoMemory reports whether a program could not be started for lack of memory.
func isNoMemory(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN)
}

// explainFullDisk adds what to do to an error of the build's own files on a full disk.
func explainFullDisk(err error) error {
	var failed *process.Error
	if !isDiskFull(err) || errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("%w: free some space for build/%s", err, resumes)
}

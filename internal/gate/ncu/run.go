// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// Errors of Run, wrapped: what keeps the counters from being read.
var (
	ErrPermission  = errors.New("the driver does not let this process read the GPU's performance counters (ERR_NVGPUCTRPERM)")
	ErrNoProfiler  = errors.New("there is no Nsight Compute (ncu)")
	ErrUnsupported = errors.New("this version of ncu does not know the counters of this GPU")
	ErrBusy        = errors.New("the counters are in use by another profiler")
)

// Command says what is profiled, and how.
type Command struct {
	Profiler string   // ncu's path
	Program  []string // what is run, with its arguments
	Kernels  []string // names of kernel functions, without templates and namespaces: launches of others are passed over
	Metrics  []Metric
}

// Args is the command line. The clocks are left as they are. Caches are flushed before each pass, so that the several
// passes over one launch, and the launches, begin alike.
func (c Command) Args(log string) []string {
	var counters []string
	for _, m := range c.Metrics {
		counters = append(counters, m.Counter)
	}
	args := []string{
		c.Profiler, "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled",
		"--clock-control", "none", "--cache-control", "all", "--replay-mode", "kernel", "--target-processes", "application-only",
		"--kernel-name-base", "function", "--kernel-name", "regex:^(" + strings.Join(c.Kernels, "|") + ")$",
		"--metrics", strings.Join(counters, ","), "--force-overwrite", "--log-file", log,
	}
	return append(args, c.Program...)
}

// Result is the result of a run.
type Result struct {
	CSV    []byte // the profiler's output, with its own lines
	Stdout string // of the program
}

// Run profiles the program to its end.
func (c Command) Run(ctx context.Context) (Result, error) {
	if c.Profiler == "" {
		return Result{}, ErrNoProfiler
	}
	dir, err := os.MkdirTemp("", "sparsek-ncu-")
	if err != nil {
		return Result{}, fmt.Errorf("ncu: %w", err)
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "log.csv")
	stdout, failed := process.Command{Args: c.Args(log)}.Output(ctx)
	if ctx.Err() != nil {
		return Result{}, failed
	}
	text, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Result{}, fmt.Errorf("ncu: %w", err)
	}
	var whole *process.Error
	said := slices.Clone(text)
	if errors.As(failed, &whole) {
		said = append(said, whole.Stderr...)
	}
	if errors.Is(failed, os.ErrNotExist) || errors.Is(failed, os.ErrPermission) {
		return Result{}, fmt.Errorf("%w: %w", ErrNoProfiler, failed)
	}
	if err := diagnose(append(said, stdout...)); err != nil {
		return Result{}, err
	}
	if failed != nil {
		return Result{}, fmt.Errorf("profiling: %w", failed)
	}
	return Result{text, stdout}, nil
}

// The profiler's words for what is wrong.
var symptoms = []struct {
	sign *regexp.Regexp
	err  error
}{
	{regexp.MustCompile(`ERR_NVGPUCTRPERM`), ErrPermission},
	{regexp.MustCompile(`(?i)failed to find metric|metrics? .*(not found|not available)`), ErrUnsupported},
	{regexp.MustCompile(`(?i)driver resource was unavailable|no other tool|another (tool|profiler)`), ErrBusy},
}

var errorLine = regexp.MustCompile(`(?m)^==ERROR==\s*(.*)$`)

// diagnose finds what the profiler complains of; nil where it does not.
func diagnose(said []byte) error {
	var complaints []string
	for _, m := range errorLine.FindAllSubmatch(said, -1) {
		complaints = append(complaints, string(bytes.TrimSpace(m[1])))
	}
	if len(complaints) == 0 {
		return nil
	}
	text := strings.Join(complaints, "; ")
	for _, s := range symptoms {
		if s.sign.MatchString(text) {
			return fmt.Errorf("%w: ncu says %q", s.err, text)
		}
	}
	return fmt.Errorf("profiling: ncu says %q", text)
}

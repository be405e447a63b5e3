// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// LongVariable is the environment variable that tests read to run their long
// forms.
const LongVariable = "SPARSEK_LONG"

// longTimeout bounds the tests of one package in the long checks.
const longTimeout = 2 * time.Hour

// LongOptions say what the long checks run on.
type LongOptions struct {
	Root      string        // of the checkout
	Library   string        // the library that was built, an absolute path
	Sanitized string        // the one that the sanitizers watch, an absolute path
	FuzzTime  time.Duration // for each fuzz target
	Out       io.Writer     // gets what go test says
}

// Long runs what takes too long for each change: the long forms of all tests
// under the race detector; the tests of whatever uses the library with each
// pointer that Go hands to C checked, and again with a library that the
// sanitizers watch; each fuzz target for its time, one after the other.
func Long(ctx context.Context, o LongOptions) error {
	list := func(args ...string) (string, error) {
		out, err := process.Command{Args: append([]string{"go"}, args...), Dir: o.Root}.Output(ctx)
		if err != nil {
			return "", fmt.Errorf("listing packages and their tests: %w", err)
		}
		return out, nil
	}
	deps, err := list("list", "-test", "-f", "{{.ImportPath}}{{range .Deps}} {{.}}{{end}}", "./...")
	if err != nil {
		return err
	}
	tests, err := list("test", "-list", "^Fuzz", "./...")
	if err != nil {
		return err
	}
	for _, step := range longSteps(o, libraryUsers(deps), fuzzTargets(tests)) {
		fmt.Fprintf(o.Out, "== %s\n", step.what)
		if err := step.run(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// step is one command of the long checks.
type step struct {
	what string
	args []string
	env  []string // added to this process's own
	fuzz bool     // fuzzing shows how it goes on, which -json would keep back
}

func (s step) run(ctx context.Context, o LongOptions) error {
	env := append(os.Environ(), s.env...)
	if s.fuzz {
		return process.Command{Args: s.args, Dir: o.Root, Env: env, Stdout: o.Out, Stderr: o.Out}.Run(ctx)
	}
	return runTests(ctx, o.Root, [][]string{s.args}, env, o.Out, nil)
}

// longSteps are the commands, in order.
func longSteps(o LongOptions, users []string, targets []fuzzTarget) []step {
	test := func(args ...string) []string {
		return append([]string{"go", "test", "-json", "-count=1", "-timeout=" + longTimeout.String()}, args...)
	}
	plain := "SPARSEK_LIBRARY=" + o.Library
	watched := []string{"SPARSEK_LIBRARY=" + o.Sanitized,
		// Tests ask for more memory than there is; the shadow of a GPU's memory lies where CUDA places its own.
		"ASAN_OPTIONS=allocator_may_return_null=1:protect_shadow_gap=0:detect_stack_use_after_return=1",
		"UBSAN_OPTIONS=print_stacktrace=1"}
	steps := []step{
		{what: "long forms of all tests, with the race detector", args: test("-race", "./..."),
			env: []string{plain, LongVariable + "=1"}},
		{what: "pointers that Go hands to C", args: test(users...), env: []string{plain, "GOEXPERIMENT=cgocheck2"}},
		{what: "the library under the address and undefined-behaviour sanitizers",
			args: test(append([]string{"-asan"}, users...)...), env: watched},
	}
	for _, t := range targets {
		s := step{what: fmt.Sprintf("%s of %s for %s", t.name, t.pkg, o.FuzzTime), env: []string{plain}, fuzz: true,
			args: []string{"go", "test", "-run=^$", "-fuzz=^" + t.name + "$", "-fuzztime=" + o.FuzzTime.String()}}
		if slices.Contains(users, t.pkg) {
			s.args, s.env = append(s.args, "-asan"), watched
		}
		s.args = append(s.args, t.pkg)
		steps = append(steps, s)
	}
	return steps
}

// wrapper is what every Go program that uses the library imports.
const wrapper = "github.com/sparsek/sparsek/wrapper"

// libraryUsers picks the packages whose tests reach the wrapper from lines
// that name a package, or the tests of one, and behind it all that it imports.
func libraryUsers(deps string) []string {
	var users []string
	for line := range strings.Lines(deps) {
		words := strings.Fields(line)
		// The test program of a package goes by the package's name and ".test".
		if len(words) == 0 || !strings.HasSuffix(words[0], ".test") {
			continue
		}
		if slices.Contains(words[1:], wrapper) {
			users = append(users, strings.TrimSuffix(words[0], ".test"))
		}
	}
	return users
}

// fuzzTarget is a fuzz test of a package.
type fuzzTarget struct{ pkg, name string }

// fuzzTargets reads what `go test -list` says: the names of a package's tests,
// a line each, then a line "ok", the package and the time.
func fuzzTargets(list string) []fuzzTarget {
	var targets []fuzzTarget
	var names []string
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		switch {
		case len(words) >= 2 && words[0] == "ok":
			for _, name := range names {
				targets = append(targets, fuzzTarget{words[1], name})
			}
			names = nil
		case len(words) == 1 && strings.HasPrefix(words[0], "Fuzz"):
			names = append(names, words[0])
		}
	}
	return targets
}

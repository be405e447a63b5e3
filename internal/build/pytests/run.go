// SPDX-License-Identifier: Apache-2.0

package pytests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// What the tests need, and what all of them need besides and looks at the
// sources. The latter are pinned: a newer one finds more.
var (
	testPackages  = []string{"numpy", "scipy", "ml_dtypes", "pytest"}
	checkPackages = []string{"jax", "mypy==2.4.1", "ruff==0.17.6"}
	// For sparsek.torch and the notebook. stanford-stk, whose own tests are run, comes as sources
	// alone.
	torchPackages = []string{"torch", "safetensors", "matplotlib", "absl-py", "--no-binary", "stanford-stk", "stanford-stk==0.7.1"}
)

// Options says what to test.
type Options struct {
	Root     string // of the checkout
	Build    string // the build folder
	Python   string // to make the environment with; empty: python3
	Offline  bool   // nothing is fetched
	Out      io.Writer
	Progress *term.Reporter
}

// Short runs the tests with few packages, where Python and these are to be had.
// Where they are not, it says what is missing.
func Short(ctx context.Context, o Options) error {
	err := o.run(ctx, "short", testPackages, nil)
	var missing *MissingError
	if errors.As(err, &missing) {
		fmt.Fprintf(o.Out, "skipped: the tests of the Python package, which need %s\n", missing.What)
		return nil
	}
	return err
}

// All runs the tests, and the checks of the sources. Where torch is not to be
// had, it says so and leaves out what needs it.
func All(ctx context.Context, o Options) error {
	packages := slices.Concat(testPackages, checkPackages)
	checks := [][]string{
		{"-m", "ruff", "check", "--no-cache", "."},
		{"-m", "ruff", "format", "--no-cache", "--diff", "."},
		{"-m", "mypy", "--cache-dir", os.DevNull},
	}
	// Types that the annotations say against what is there at run time: it imports every module.
	stubs := []string{"-m", "mypy.stubtest", "sparsek", "sparse_autotune", "--mypy-config-file", "pyproject.toml", "--allowlist", "stubtest.allow"}
	err := o.run(ctx, "torch", slices.Concat(packages, torchPackages), append(checks[:len(checks):len(checks)], stubs))
	var missing *MissingError
	if !errors.As(err, &missing) {
		return err
	}
	fmt.Fprintf(o.Out, "skipped: the tests of sparsek.torch, which need %s\n", missing.What)
	return o.run(ctx, "all", packages, checks)
}

// run runs pytest in the environment of that name, after the checks.
func (o Options) run(ctx context.Context, name string, packages []string, checks [][]string) error {
	build, err := filepath.Abs(o.Build)
	if err != nil {
		return err
	}
	if o.Python == "" {
		o.Python = "python3"
	}
	step := o.Progress.Step("Python's packages")
	python, err := environment{filepath.Join(build, "python", name), o.Python, packages, o.Offline}.make(ctx)
	step.End(err)
	if err != nil {
		return err
	}
	env := append(os.Environ(), "SPARSEK_LIBRARY="+filepath.Join(build, "lib"), "SPARSEK_TUNING_CACHE=off", "PYTHONDONTWRITEBYTECODE=1")
	step, out := o.Progress.Step("Python's tests"), o.Progress.Through(o.Out)
	for _, args := range append(checks, []string{"-m", "pytest", "-p", "no:cacheprovider"}) {
		command := process.Command{Args: append([]string{python}, args...), Dir: filepath.Join(o.Root, "python"), Env: env, Stdout: out, Stderr: out}
		if args[1] != "pytest" { // whose tests find the sources by themselves
			command.Env = append(env[:len(env):len(env)], "PYTHONPATH=src")
		}
		if err = command.Run(ctx); err != nil {
			err = fmt.Errorf("tests of the Python package: python %s: %w", args[1], err)
			break
		}
	}
	step.End(err)
	return err
}

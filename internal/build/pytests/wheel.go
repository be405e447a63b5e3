// SPDX-License-Identifier: Apache-2.0

package pytests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// Wheel installs a wheel into an environment that has nothing but NumPy, and
// uses it there as its users do.
func Wheel(ctx context.Context, o Options, file string) error {
	build, err := filepath.Abs(o.Build)
	if err != nil {
		return err
	}
	if o.Python == "" {
		o.Python = "python3"
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return err
	}
	step := o.Progress.Step("the wheel")
	err = o.wheel(ctx, filepath.Join(build, "python", "wheel"), file, filepath.Join(root, "python/tests/use_wheel.py"))
	step.End(err)
	return err
}

// wheel runs a program of Python in the environment dir, with the wheel in it.
func (o Options) wheel(ctx context.Context, dir, file, program string) error {
	python, err := environment{dir, o.Python, []string{"numpy"}, o.Offline}.make(ctx)
	if err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	install := []string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--force-reinstall", "--no-deps", file}
	var env []string // nothing that helps the package to find a library elsewhere
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "SPARSEK_") && !strings.HasPrefix(setting, "PYTHONPATH=") {
			env = append(env, setting)
		}
	}
	env = append(env, "SPARSEK_TUNING_CACHE=off")
	out := o.Progress.Through(o.Out)
	for _, args := range [][]string{install, {python, "-I", "-W", "error", program, filepath.Dir(filepath.Dir(python))}} {
		if err := (process.Command{Args: args, Dir: filepath.Dir(dir), Env: env, Stdout: out, Stderr: out}).Run(ctx); err != nil {
			return fmt.Errorf("using the wheel: %w", err)
		}
	}
	return nil
}

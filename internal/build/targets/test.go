// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sparsek/sparsek/internal/build"
	"github.com/sparsek/sparsek/internal/build/check"
	"github.com/sparsek/sparsek/internal/build/pybindings"
	"github.com/sparsek/sparsek/internal/build/pytests"
	"github.com/sparsek/sparsek/internal/build/rustbindings"
	"github.com/sparsek/sparsek/internal/build/rusttests"
	"github.com/sparsek/sparsek/internal/toolchain"
)

// Test builds, checks the sources and the baseline, compiles the tests that
// run on other machines into build/test, and runs all tests, those of the
// Python package in a short form.
func (c Checkout) Test(ctx context.Context) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	if err := c.format(ctx, false); err != nil {
		return err
	}
	if err := check.Vet(ctx, root, c.Err, c.Progress); err != nil {
		return err
	}
	if err := build.MakeTestPrograms(ctx, root, c.Progress); err != nil {
		return err
	}
	if err := c.run(ctx, "gate", "--check"); err != nil {
		return err
	}
	if err := pytests.Short(ctx, c.python()); err != nil {
		return err
	}
	if err := rusttests.Short(ctx, c.rust()); err != nil {
		return err
	}
	made, err := filepath.Abs(build.Library)
	if err != nil {
		return err
	}
	return check.Test(ctx, root, made, c.Out, c.Progress)
}

// TestLong builds and runs what takes hours; fuzzTime is for each fuzz target.
func (c Checkout) TestLong(ctx context.Context, fuzzTime time.Duration) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	if err := c.library(ctx, func(o *build.Options) { o.Sanitize = true }); err != nil {
		return err
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	return check.Long(ctx, check.LongOptions{Root: dir, Library: filepath.Join(dir, build.Library),
		Sanitized: filepath.Join(dir, build.SanitizedLibrary), FuzzTime: fuzzTime, Out: c.Out})
}

// Format formats the sources, and writes those that are made from others.
func (c Checkout) Format(ctx context.Context) error {
	if err := c.format(ctx, true); err != nil {
		return err
	}
	if err := pybindings.Write(root); err != nil {
		return err
	}
	return rustbindings.Write(root)
}

// format checks the format of the sources, or with fix formats them.
func (c Checkout) format(ctx context.Context, fix bool) error {
	dir, err := os.MkdirTemp("", "sparsek-format-")
	if err != nil {
		return fmt.Errorf("checking the format: %w", err)
	}
	defer os.RemoveAll(dir)
	clangFormat, err := toolchain.ClangFormat(ctx, c.toolchain(), dir)
	if err != nil {
		return fmt.Errorf("checking the format: %w", err)
	}
	step := c.Progress.Step("format")
	err = check.Format(ctx, root, clangFormat, fix)
	step.End(err)
	return err
}

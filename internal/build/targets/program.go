// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sparsek/sparsek/internal/build"
	"github.com/sparsek/sparsek/internal/build/check"
	"github.com/sparsek/sparsek/internal/gate/blessed"
	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
)

// programName is the base name of build.Program; its exit codes are passed on.
const programName = "sparsek"

// Run builds, and runs build/bin/sparsek with the arguments.
func (c Checkout) Run(ctx context.Context, args ...string) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	return c.run(ctx, args...)
}

func (c Checkout) run(ctx context.Context, args ...string) error {
	return process.Command{Args: append([]string{build.Program}, args...), Stdout: c.Out, Stderr: c.Err}.Run(ctx)
}

// Gate builds, and compares with the blessed library. Where that cannot be had, the program compares with recorded
// figures, and reports that.
func (c Checkout) Gate(ctx context.Context) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	if err := c.Blessed(ctx); err != nil {
		fmt.Fprintln(c.Err, err)
	}
	return c.run(ctx, "gate")
}

// Blessed makes build/blessed, where the gate looks for the libraries that baselines were measured with.
func (c Checkout) Blessed(ctx context.Context) error {
	libraries, err := blessed.Libraries(root)
	if err != nil {
		return err
	}
	cache, err := fetch.Open(fetch.Options{Progress: c.Progress})
	if err != nil {
		return err
	}
	o := blessed.MakeOptions{Root: root, Build: filepath.Join("build", blessed.Folder), Cache: filepath.Join(cache.Dir(), blessed.Folder),
		Offline: c.Offline, Log: c.Err}
	for _, l := range libraries {
		if err := blessed.Make(ctx, l, o); err != nil {
			return err
		}
	}
	return nil
}

// ProfileNoise profiles five times over into a new folder below build/noise.
func (c Checkout) ProfileNoise(ctx context.Context) error {
	dir := filepath.Join("build/noise", time.Now().UTC().Format("20060102-150405"))
	return c.Run(ctx, "profile", "--runs", "5", "--out", dir)
}

// Sandbox builds the library with the hand-written TMA kernel alone and
// verifies that, where there is a GPU.
func (c Checkout) Sandbox(ctx context.Context) error {
	if err := c.library(ctx, func(o *build.Options) { o.Sandbox = true }); err != nil {
		return err
	}
	if err := build.MakeProgram(ctx, root, c.Progress); err != nil {
		return err
	}
	made, err := filepath.Abs(build.SandboxLibrary)
	if err != nil {
		return err
	}
	return check.Sandbox(ctx, build.Program, made, c.Out)
}

// SPDX-License-Identifier: Apache-2.0

// Package targets has what the targets of the magefile do. The magefile names
// them, says what they are for and reads their flags.
package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sparsek/sparsek/internal/build"
	"github.com/sparsek/sparsek/internal/cli/exitcode"
	"github.com/sparsek/sparsek/internal/machine/doctor/buildenv"
	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// Checkout is the checkout in the working directory, and how to work in it.
type Checkout struct {
	Offline  bool // nothing is fetched
	Progress *term.Reporter
	Out      io.Writer // results
	Err      io.Writer // what programs that run write besides
}

// Here is the checkout in the working directory, with this process's own
// output.
func Here(offline bool) Checkout {
	return Checkout{Offline: offline, Progress: term.New(os.Stderr), Out: os.Stdout, Err: os.Stderr}
}

// root is the checkout's. go tool mage runs in it.
const root = "."

// hostCompiler is the one that the user names; empty: g++.
func hostCompiler() string { return os.Getenv("CXX") }

// coder is an error that chooses the exit code.
type coder struct {
	error
	code int
}

func (c coder) Unwrap() error { return c.error }

// noGPUJob is doctor's exit code where a build works and a GPU job does not, as
// docs/toolchain.md gives it.
const noGPUJob = 3

// End writes how a target ended, if it failed, and returns the exit code: that
// of the program that it ran, if that failed.
func End(err error, w io.Writer) int {
	var chosen coder
	var failed *process.Error
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w, "interrupted")
		return exitcode.Interrupted
	case errors.As(err, &chosen):
		fmt.Fprintln(w, err)
		return chosen.code
	}
	fmt.Fprintf(w, "Error: %v\n", err)
	if errors.As(err, &failed) && failed.Program == programName && failed.Code > 0 {
		return failed.Code
	}
	return 1
}

func (c Checkout) toolchain() toolchain.Options {
	return toolchain.Options{LockPath: lock.FileName, Offline: c.Offline, Progress: c.Progress}
}

// Fetch makes the toolchain.
func (c Checkout) Fetch(ctx context.Context) error {
	_, err := toolchain.Prepare(ctx, c.toolchain())
	return err
}

// options prepares the toolchain and says what to build with. Before that it
// makes sure that the machine can build: no Go compiler that lacks cgo, and no
// full disk, is found after minutes of CUDA.
func (c Checkout) options(ctx context.Context) (build.Options, error) {
	if err := buildenv.Preflight(ctx, root, hostCompiler()); err != nil {
		return build.Options{}, err
	}
	tools, err := toolchain.Prepare(ctx, c.toolchain())
	return build.Options{Root: root, Toolchain: tools, CXX: hostCompiler(), Progress: c.Progress}, err
}

// library builds a library; change says which.
func (c Checkout) library(ctx context.Context, change func(*build.Options)) error {
	o, err := c.options(ctx)
	if err != nil {
		return err
	}
	change(&o)
	return build.MakeLibrary(ctx, o)
}

// Library builds libsparsek.
func (c Checkout) Library(ctx context.Context) error {
	return c.library(ctx, func(*build.Options) {})
}

// Build builds libsparsek and the program.
func (c Checkout) Build(ctx context.Context) error {
	if err := c.Library(ctx); err != nil {
		return err
	}
	return build.MakeProgram(ctx, root, c.Progress)
}

// CompileCommands writes build/compile_commands.json.
func (c Checkout) CompileCommands(ctx context.Context) error {
	o, err := c.options(ctx)
	if err != nil {
		return err
	}
	n, err := build.WriteCompileCommands(ctx, o)
	if err == nil {
		fmt.Fprintf(c.Out, "%s: %d files\n", build.CompileCommands, n)
	}
	return err
}

// Clean removes build/.
func (c Checkout) Clean(ctx context.Context) error { return build.Clean(ctx, root, c.Progress) }

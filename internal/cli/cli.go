// SPDX-License-Identifier: Apache-2.0

// Package cli is what the program sparsek does: its commands, their flags, what they print, and how they end.
//
// Each command is a struct: its fields are the flags and arguments, which package kong reads, and its method Run does the
// work. Its method Help gives examples.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// environment is what a command works with.
type environment struct {
	stdout   io.Writer // results
	stderr   io.Writer // warnings and errors
	progress *term.Reporter
	args     []string        // of the program
	given    map[string]bool // the flags that were given, by name
}

// program is the command line.
type program struct {
	Help    helpFlag    `short:"h" help:"Show the flags of a command."`
	Version versionFlag `help:"Show the version."`

	Run       runCommand       `cmd:"" group:"Commands" help:"Multiply a matrix from a file, or a pattern, by a dense one."`
	Verify    verifyCommand    `cmd:"" group:"Commands" help:"Compute three products and check every element of the results."`
	Attention attentionCommand `cmd:"" group:"Commands" help:"Compute attention over a block-sparse layout, time it and check it."`
	Bench     benchCommand     `cmd:"" group:"Commands" help:"Time suites of products, or your own matrices, beside other libraries."`
	Tune      tuneCommand      `cmd:"" group:"Commands" help:"Measure which kernel is the fastest for a product, and remember it."`
	Cache     cacheCommand     `cmd:"" group:"Commands" help:"Show, merge or remove measurements of kernels (the tuning cache)."`
	Info      infoCommand      `cmd:"" group:"Commands" help:"Show the library, its kernels and the devices."`
	Doctor    doctorCommand    `cmd:"" group:"Commands" help:"Show what the machine lacks for products on a GPU, and what to do."`
	Ver       versionRun       `cmd:"" name:"version" group:"Commands" help:"Show the version of the program and of the library."`

	Profile profileCommand `cmd:"" group:"For maintainers" help:"Measure the cases of the gate with Nsight Compute."`
	Gate    gateCommand    `cmd:"" group:"For maintainers" help:"Compare the build with the blessed library, or with recorded counters."`
	Pair    pairCommand    `cmd:"" group:"For maintainers" help:"Time two builds of the library against each other, in turn."`
	Bless   blessCommand   `cmd:"" group:"For maintainers" help:"Make a profile the baseline."`
}

// patience is how long work may take without progress being shown.
const patience = 500 * time.Millisecond

// Main runs the program with its arguments (without its name) and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	e := &environment{stdout: stdout, stderr: stderr, progress: term.New(stderr).Patient(patience), args: args}
	err := dispatch(ctx, e)
	code := exitCode(err)
	if code == exitInterrupted {
		err = errors.New("interrupted")
	}
	if code != exitOK {
		fmt.Fprintf(stderr, "sparsek: %s\n", strings.TrimPrefix(err.Error(), "sparsek: "))
	}
	return code
}

func dispatch(ctx context.Context, e *environment) error {
	args := e.args
	if len(args) == 0 { // the help is no result then
		args, e.stdout = []string{"--help"}, e.stderr
	}
	parser, err := newParser(e)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(inOrder(parser.Model.Node, args))
	if errors.Is(err, errShown) {
		if len(e.args) == 0 {
			return failf(exitUsage, "give a command")
		}
		return nil
	}
	if err != nil {
		return usageError(err)
	}
	e.given = givenFlags(parsed)
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run(e)
}

// openEngine opens the library and a device, and warns of a GPU that is not used since something is wrong with it; 0
// threads are one for each core.
func openEngine(e *environment, device deviceFlag, threads count) (*sparsek.Engine, error) {
	lib, err := sparsek.Default()
	if err != nil {
		return nil, fail(exitNoLibrary, err)
	}
	engine, err := lib.NewEngine(sparsek.EngineOptions{Backend: device.backend, Device: device.ordinal, Threads: int(threads)})
	if errors.Is(err, sparsek.ErrBadArgument) { // the only argument that can be wrong here: the library has a limit
		return nil, failf(exitUsage, "--threads %d: more than the library's limit: %w", threads, withoutOperation(err))
	}
	if err == nil && engine.Info().GPUFault {
		fmt.Fprintf(e.stderr, "sparsek: warning: on the CPU, not a GPU: %s (sparsek doctor says more)\n", engine.Info().Reason)
	}
	return engine, err
}

// withoutOperation is an error of the library without the name of the call: the message alone.
func withoutOperation(err error) error {
	var e *sparsek.Error
	if errors.As(err, &e) {
		return errors.New(e.Msg)
	}
	return err
}

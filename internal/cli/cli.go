// SPDX-License-Identifier: Apache-2.0

// Package cli is what the program sparsek does: its subcommands, their flags, what they print, and how they end.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// environment is what a subcommand works with.
type environment struct {
	stdout   io.Writer // results
	stderr   io.Writer // usage and errors
	progress *term.Reporter
}

type command struct {
	name, arguments, summary string
	run                      func(ctx context.Context, e *environment, args []string) error
}

func commands() []command {
	return []command{
		{"verify", "[flags]", "compute three products and check every element of the results", verify},
		{"run", "[flags]", "multiply a matrix from a file, or a pattern, by a dense one", run},
		{"tune", "[flags]", "measure which kernel is the fastest for a product, and remember it", tune},
		{"bench", "[flags] [case...]", "time suites of products, or own matrices, beside other libraries", runBench},
		{"cache", "ACTION [flags]", "show, bring together or remove what was measured of kernels", cache},
		{"profile", "[flags] [case...]", "measure the roofline suite with Nsight Compute", takeProfiles},
		{"gate", "[flags] [case...]", "compare a profile with the baseline", runGate},
		{"bless", "--reason TEXT [flags]", "make a profile the baseline", bless},
		{"info", "[flags]", "show the library, its kernels and the devices", info},
		{"doctor", "[flags]", "show what the machine lacks for products on a GPU, and the mend", diagnose},
		{"version", "", "show the version", version},
	}
}

// Main runs the program with its arguments (without its name) and gives the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	e := &environment{stdout, stderr, term.New(stderr)}
	err := dispatch(ctx, e, args)
	if code := exitCode(err); code != exitOK {
		if code == exitInterrupted {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(stderr, "sparsek: %s\n", strings.TrimPrefix(err.Error(), "sparsek: "))
		return code
	}
	return exitOK
}

func dispatch(ctx context.Context, e *environment, args []string) error {
	if len(args) == 0 {
		usage(e.stderr)
		return failf(exitUsage, "no command given")
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(e.stdout)
		return nil
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, e, args[1:])
		}
	}
	return failf(exitUsage, "there is no command %q: \"sparsek help\" lists them", args[0])
}

func usage(w io.Writer) {
	fmt.Fprint(w, "sparsek multiplies block-sparse matrices by dense ones.\n\nusage: sparsek COMMAND [flags]\n\n")
	listCommands(w, commands())
	fmt.Fprint(w, "\n\"sparsek COMMAND --help\" shows its flags. Exit codes: 0 done, 1 wrong result, 2 usage, 10 to 19 input,\n"+
		"20 to 29 library and device, 30 output, 40 to 43 the profile gate, 130 interrupted.\n")
}

func listCommands(w io.Writer, list []command) {
	width := 0
	for _, c := range list {
		width = max(width, len(c.name))
	}
	for _, c := range list {
		fmt.Fprintf(w, "  %-*s  %s\n", width, c.name, c.summary)
	}
}

// newFlags makes the flag set of a command.
func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // parse says what is wrong, once
	flags.Usage = func() {}
	return flags
}

// parse reads the flags of a command and refuses other arguments, unless the command takes some.
func parse(e *environment, flags *flag.FlagSet, args []string, takesArguments bool) error {
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		printFlags(e.stdout, flags)
		return err
	}
	if err != nil {
		return failf(exitUsage, "%s: %w (\"sparsek %s --help\" lists the flags)", flags.Name(), err, flags.Name())
	}
	if !takesArguments && flags.NArg() > 0 {
		return failf(exitUsage, "%s: %q is no flag, and no other arguments are taken", flags.Name(), flags.Arg(0))
	}
	return nil
}

func printFlags(w io.Writer, flags *flag.FlagSet) {
	for _, c := range slices.Concat(commands(), cacheCommands()) {
		if c.name == flags.Name() {
			fmt.Fprintf(w, "usage: sparsek %s %s\n\n%s.\n", c.name, c.arguments, strings.ToUpper(c.summary[:1])+c.summary[1:])
		}
	}
	fmt.Fprintln(w)
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(w, "  --%-22s %s\n", strings.TrimSpace(f.Name+" "+value), text)
	})
}

// errStopped ends a progress line: what the matter was is told once, at the end.
var errStopped = errors.New("stopped")

func endBar(bar *term.Bar, err error) {
	if err != nil {
		bar.Fail(errStopped)
		return
	}
	bar.Done()
}

// newContext opens the library and the device that was asked for.
func newContext(device deviceFlag, threads int) (*sparsek.Engine, error) {
	if threads < 0 {
		return nil, failf(exitUsage, "--threads %d: want a positive number", threads)
	}
	lib, err := sparsek.Default()
	if err != nil {
		return nil, fail(exitNoLibrary, err)
	}
	c, err := lib.NewEngine(sparsek.EngineOptions{Backend: device.backend, Device: device.ordinal, Threads: threads})
	if errors.Is(err, sparsek.ErrBadArgument) { // the only argument that can be wrong here: the library has a limit
		return nil, fail(exitUsage, fmt.Errorf("--threads %d: %w", threads, err))
	}
	return c, err
}

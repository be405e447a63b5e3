// SPDX-License-Identifier: Apache-2.0

package rusttests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// Options says what to test.
type Options struct {
	Root     string // of the checkout
	Build    string // the build folder
	Cargo    string // the program; empty: that of CARGO, else cargo in PATH or in ~/.cargo/bin
	Offline  bool   // nothing is fetched
	Out      io.Writer
	Progress *term.Reporter
}

// MissingError says why nothing can be tested.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return "the tests of the Rust crates need " + e.What }

// Short runs the tests where cargo and the crates that they need are to be had.
// Where they are not, it says what is missing.
func Short(ctx context.Context, o Options) error {
	err := o.run(ctx, shortCommands)
	var missing *MissingError
	if errors.As(err, &missing) {
		fmt.Fprintf(o.Out, "skipped: %v\n", missing)
		return nil
	}
	return err
}

// All runs the tests with all features, formatter, linter, documentation and a
// trial of the packages.
func All(ctx context.Context, o Options) error { return o.run(ctx, allCommands) }

// command is one of cargo's: its arguments, and a variable of its environment.
type command struct {
	args []string
	env  string
}

var shortCommands = []command{{args: []string{"test", "--quiet"}}}

var allCommands = []command{
	{args: []string{"fmt", "--check"}},
	{args: []string{"clippy", "--all-targets", "--all-features", "--", "--deny=warnings"}},
	{args: []string{"test", "--quiet", "--all-features"}},
	{args: []string{"doc", "--no-deps", "--all-features"}, env: "RUSTDOCFLAGS=--deny=warnings"},
	{args: []string{"package", "--allow-dirty", "--no-verify"}},
}

// run runs the commands, after what they need was fetched.
func (o Options) run(ctx context.Context, commands []command) error {
	cargo, err := o.cargo()
	if err != nil {
		return err
	}
	build, err := filepath.Abs(o.Build)
	if err != nil {
		return err
	}
	env := append(os.Environ(), "CARGO_TARGET_DIR="+filepath.Join(build, "rust"), "CARGO_TERM_COLOR=never",
		"SPARSEK_LIBRARY="+filepath.Join(build, "lib"), "SPARSEK_TUNING_CACHE=off")
	if path := filepath.Dir(cargo); filepath.IsAbs(path) { // where its own programs, rustc among them, may be alone
		env = append(env, "PATH="+os.Getenv("PATH")+string(os.PathListSeparator)+path)
	}
	dir := filepath.Join(o.Root, "rust")
	fetch := []string{cargo, "fetch", "--locked", "--quiet"}
	if o.Offline {
		fetch = append(fetch, "--offline")
	}
	step := o.Progress.Step("crates")
	_, err = process.Command{Args: fetch, Dir: dir, Env: env}.Output(ctx)
	step.End(err)
	if err != nil {
		if ctx.Err() != nil || strings.Contains(err.Error(), "--locked was passed") {
			return fmt.Errorf("cargo fetch: %w", err)
		}
		return &MissingError{fmt.Sprintf("crates: %v", err)}
	}
	step, out := o.Progress.Step("crates' tests"), o.Progress.Through(o.Out)
	for _, c := range commands {
		// What they need is there now: they ask no index.
		args := append([]string{cargo, c.args[0], "--offline"}, c.args[1:]...)
		if c.args[0] == "fmt" {
			args = append([]string{cargo}, c.args...)
		}
		command := process.Command{Args: args, Dir: dir, Env: append(env, c.env), Stdout: out, Stderr: out}
		if err = command.Run(ctx); err != nil {
			err = fmt.Errorf("cargo %s: %w", c.args[0], err)
			break
		}
	}
	step.End(err)
	return err
}

// cargo is the program to run.
func (o Options) cargo() (string, error) {
	name := o.Cargo
	if name == "" {
		name = os.Getenv("CARGO")
	}
	if name == "" {
		if path, err := exec.LookPath("cargo"); err == nil {
			return path, nil
		}
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &MissingError{"cargo"}
		}
		name = filepath.Join(home, ".cargo", "bin", "cargo")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &MissingError{"cargo (" + err.Error() + ")"}
	}
	return path, nil
}

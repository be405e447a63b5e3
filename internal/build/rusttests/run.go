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
	"slices"
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
// trial of the packages, and those checks of optionals that the machine can
// make.
func All(ctx context.Context, o Options) error {
	if err := o.run(ctx, allCommands); err != nil {
		return err
	}
	c, err := o.cargo("rust", "rust")
	if err != nil {
		return err
	}
	return c.runOptional(ctx, o, optionals)
}

// command is one of cargo's: its arguments, and what it has in its environment besides.
type command struct {
	args []string
	env  []string
}

var shortCommands = []command{{args: []string{"test", "--quiet"}}}

var allCommands = []command{
	{args: []string{"fmt", "--check"}},
	{args: []string{"clippy", "--workspace", "--all-targets", "--all-features", "--", "--deny=warnings"}},
	{args: []string{"test", "--quiet", "--all-features"}},
	{args: []string{"doc", "--no-deps", "--all-features"}, env: []string{"RUSTDOCFLAGS=--deny=warnings"}},
	{args: []string{"package", "--allow-dirty", "--no-verify"}},
}

// burnFeatures are those of the crate for Burn that need nothing besides Rust.
// Its feature cuda fetches LLVM when it is built; with DOCS_RS set, it is
// checked without.
const burnFeatures = "--features=ndarray,safetensors"

// burnCommands are those of the crate for Burn. Its packages cannot be tried
// before sparsek is in an index.
var burnCommands = []command{
	{args: []string{"fmt", "--check"}},
	{args: []string{"clippy", "--all-targets", burnFeatures, "--", "--deny=warnings"}},
	{args: []string{"test", "--quiet", burnFeatures}},
	{args: []string{"doc", "--no-deps", burnFeatures}, env: []string{"RUSTDOCFLAGS=--deny=warnings"}},
	{args: []string{"clippy", "--features=cuda", "--", "--deny=warnings"}, env: []string{"DOCS_RS=1"}},
}

// Burn runs the tests of the crate for Burn, and the checks of its sources.
// Cargo fetches what they need.
func Burn(ctx context.Context, o Options) error {
	c, err := o.cargo("rust/sparsek-burn", "rust-burn")
	if err != nil {
		return err
	}
	if err := c.run(ctx, o, "tests of the crate for Burn", burnCommands, o.Offline); err != nil {
		return err
	}
	return c.runOptional(ctx, o, []optional{denied})
}

// run runs the commands, after what they need was fetched. Faulty manifests
// are found before: cargo fetch does not say what it failed by.
func (o Options) run(ctx context.Context, commands []command) error {
	c, err := o.cargo("rust", "rust")
	if err != nil {
		return err
	}
	if err := c.checkVersion(ctx); err != nil {
		return err
	}
	read := []string{c.program, "metadata", "--no-deps", "--format-version", "1", "--offline"}
	if _, err := (process.Command{Args: read, Dir: c.dir, Env: c.env}).Output(ctx); err != nil {
		return fmt.Errorf("cargo metadata: %w", err)
	}
	fetch := []string{c.program, "fetch", "--locked", "--quiet"}
	if o.Offline {
		fetch = append(fetch, "--offline")
	}
	step := o.Progress.Step("crates")
	_, err = process.Command{Args: fetch, Dir: c.dir, Env: c.env}.Output(ctx)
	step.End(err)
	if err != nil {
		if ctx.Err() != nil || strings.Contains(err.Error(), "--locked was passed") {
			return fmt.Errorf("cargo fetch: %w", err)
		}
		return &MissingError{fmt.Sprintf("crates: %v", err)}
	}
	return c.run(ctx, o, "crates' tests", commands, true)
}

// cargo is the program, where it works and its environment.
type cargo struct {
	program string
	dir     string
	env     []string
}

// cargo works in a folder of the checkout; what it makes goes into the folder
// target of the build folder.
func (o Options) cargo(dir, target string) (cargo, error) {
	program, err := o.program()
	if err != nil {
		return cargo{}, err
	}
	build, err := filepath.Abs(o.Build)
	if err != nil {
		return cargo{}, err
	}
	env := append(os.Environ(), "CARGO_TARGET_DIR="+filepath.Join(build, target), "CARGO_TERM_COLOR=never",
		"SPARSEK_LIBRARY="+filepath.Join(build, "lib"), "SPARSEK_TUNING_CACHE=off")
	if path := filepath.Dir(program); filepath.IsAbs(path) { // where its own programs, rustc among them, may be alone
		env = append(env, "PATH="+os.Getenv("PATH")+string(os.PathListSeparator)+path)
	}
	return cargo{program, filepath.Join(o.Root, filepath.FromSlash(dir)), env}, nil
}

// oldest is the first version that can build the crates, as rust/Cargo.toml says.
var oldest = [2]int{1, 88}

// checkVersion returns a MissingError where there is a program cargo that does
// not work or is too old to read the manifests.
func (c cargo) checkVersion(ctx context.Context) error {
	out, err := process.Command{Args: []string{c.program, "--version"}, Dir: c.dir, Env: c.env}.Output(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &MissingError{fmt.Sprintf("cargo: %v", err)}
	}
	var version [2]int
	text := strings.TrimSpace(out)
	if _, err := fmt.Sscanf(text, "cargo %d.%d", &version[0], &version[1]); err != nil || slices.Compare(version[:], oldest[:]) < 0 {
		return &MissingError{fmt.Sprintf("cargo %d.%d or later: there is %q", oldest[0], oldest[1], text)}
	}
	return nil
}

// offline is the same cargo, which with offline fetches nothing.
func (c cargo) offline(offline bool) cargo {
	if offline {
		c.env = append(slices.Clone(c.env), "CARGO_NET_OFFLINE=true")
	}
	return c
}

// run runs the commands up to the first that fails.
func (c cargo) run(ctx context.Context, o Options, what string, commands []command, offline bool) error {
	step, out := o.Progress.Step(what), o.Progress.Through(o.Out)
	c = c.offline(offline)
	err := func() error {
		for _, command := range commands {
			args := append([]string{c.program}, command.args...)
			run := process.Command{Args: args, Dir: c.dir, Env: slices.Concat(c.env, command.env), Stdout: out, Stderr: out}
			if err := run.Run(ctx); err != nil {
				return fmt.Errorf("cargo %s: %w", strings.Join(command.args, " "), err)
			}
		}
		return nil
	}()
	step.End(err)
	return err
}

// program is cargo.
func (o Options) program() (string, error) {
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

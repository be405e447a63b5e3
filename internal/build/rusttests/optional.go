// SPDX-License-Identifier: Apache-2.0

package rusttests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// optional is a check by programs that few machines have.
type optional struct {
	what     string
	needs    string   // what to do where the probe fails
	probe    []string // of cargo, which works where the check can be made
	commands []command
	copied   bool // in a copy of the workspace, whose lock file the commands may change
	fetches  bool // what the lock file does not name
}

// oldestRust are the checks by the oldest compiler that the manifests name.
var oldestRust = fmt.Sprintf("+%d.%d", oldest[0], oldest[1])

// optionals are those of the crates without Burn's. Miri runs what does not
// call the library, which its tests say.
var optionals = []optional{
	{
		what:     "the oldest Rust",
		needs:    "rustup toolchain install " + oldestRust[1:],
		probe:    []string{oldestRust, "--version"},
		commands: []command{{args: []string{oldestRust, "check", "--workspace", "--all-targets", "--all-features"}}},
	},
	{
		what:  "the oldest crates",
		needs: "rustup toolchain install nightly",
		probe: []string{"+nightly", "--version"},
		commands: []command{
			{args: []string{"+nightly", "update", "-Z", "direct-minimal-versions"}},
			{args: []string{"check", "--workspace", "--all-targets", "--all-features"}},
		},
		copied:  true,
		fetches: true,
	},
	{
		what:  "Miri",
		needs: "rustup component add --toolchain nightly miri rust-src",
		probe: []string{"+nightly", "miri", "--version"},
		commands: []command{
			{args: []string{"+nightly", "miri", "test", "--lib", "--features=ndarray"}},
			{args: []string{"+nightly", "miri", "test", "--package=sparsek", "--test=arrays", "--features=ndarray", "views"}},
		},
	},
	denied,
}

// denied is the check of licences, sources and doubled versions by deny.toml,
// which cargo deny finds in the folder of the workspace or above it.
var denied = optional{
	what:     "licences and sources of crates",
	needs:    "cargo install cargo-deny --locked",
	probe:    []string{"deny", "--version"},
	commands: []command{{args: []string{"deny", "--all-features", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"}}},
}

// runOptional makes the checks that this machine can, and says which it cannot.
func (c cargo) runOptional(ctx context.Context, o Options, checks []optional) error {
	for _, check := range checks {
		if check.fetches && o.Offline {
			fmt.Fprintf(o.Out, "skipped: %s: this is offline, and cargo fetches other versions for it\n", check.what)
			continue
		}
		_, err := process.Command{Args: append([]string{c.program}, check.probe...), Dir: c.dir, Env: c.env}.Output(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(o.Out, "skipped: %s: `%s` would make this check possible\n", check.what, check.needs)
			continue
		}
		in := c
		if check.copied {
			if in.dir, err = c.copied(o); err != nil {
				return fmt.Errorf("%s: %w", check.what, err)
			}
		}
		if err := in.run(ctx, o, check.what, check.commands, !check.fetches); err != nil {
			return fmt.Errorf("%s: %w", check.what, err)
		}
	}
	return nil
}

// copied is a copy of the workspace in the build folder.
func (c cargo) copied(o Options) (string, error) {
	to := filepath.Join(o.Build, "rust-copy")
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	for _, part := range []string{"sparsek-sys", "sparsek", "examples"} {
		if err := os.CopyFS(filepath.Join(to, part), os.DirFS(filepath.Join(c.dir, part))); err != nil {
			return "", err
		}
	}
	for _, file := range []string{"Cargo.toml", "Cargo.lock"} {
		text, err := os.ReadFile(filepath.Join(c.dir, file))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(to, file), text, 0o666); err != nil {
			return "", err
		}
	}
	return filepath.Abs(to)
}

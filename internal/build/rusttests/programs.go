// SPDX-License-Identifier: Apache-2.0

package rusttests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// programsDir is the folder of the build folder that Programs fills. Programs
// in it find ../lib/libsparsek.so.
const programsDir = "rust-test"

// Programs compiles the crates' tests, and the programs among their examples,
// into build/rust-test, to be run on another machine: as PACKAGE-TEST, with
// burn those of the crate for Burn too.
func Programs(ctx context.Context, o Options, burn bool) error {
	c, err := o.cargo("rust", "rust")
	if err != nil {
		return err
	}
	if err := c.checkVersion(ctx); err != nil {
		return err
	}
	to := filepath.Join(o.Build, programsDir)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	// Those of faer need no other machine, and faer takes minutes to compile.
	tests := []string{"test", "--no-run", "--release", "--features=ndarray"}
	if err := c.programs(ctx, o, to, tests); err != nil {
		return err
	}
	if err := c.programs(ctx, o, to, []string{"build", "--release", "--workspace", "--bins"}); err != nil || !burn {
		return err
	}
	if c, err = o.cargo("rust/sparsek-burn", "rust-burn"); err != nil {
		return err
	}
	// As `mage rust -burn` makes them: Burn need not be compiled twice.
	return c.programs(ctx, o, to, []string{"test", "--no-run", burnFeatures})
}

// programs copies what a command of cargo makes.
func (c cargo) programs(ctx context.Context, o Options, to string, args []string) error {
	args = append([]string{c.program}, append(args, "--message-format=json-render-diagnostics")...)
	step := o.Progress.Step("test programs")
	messages, err := process.Command{Args: args, Dir: c.dir, Env: c.offline(o.Offline).env, Stderr: o.Progress.Through(o.Out)}.Output(ctx)
	step.End(err)
	if err != nil {
		return fmt.Errorf("cargo %s: %w", args[1], err)
	}
	made := 0
	for line := range strings.Lines(messages) {
		name, file, err := program(line)
		if err != nil {
			return fmt.Errorf("cargo %s: %w", args[1], err)
		}
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o777); err != nil {
			return err
		}
		made++
	}
	if made == 0 {
		return errors.New("cargo " + args[1] + " made no programs")
	}
	return nil
}

// program is the name and the file of the program that a message of cargo is
// about; both are "" where it is about something else.
func program(message string) (name, file string, err error) {
	var m struct {
		ManifestPath string `json:"manifest_path"`
		Executable   string
		Profile      struct{ Test bool }
		Target       struct {
			Name string
			Kind []string
		}
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return "", "", err
	}
	if m.Executable == "" || len(m.Target.Kind) == 0 {
		return "", "", nil
	}
	switch name = m.Target.Name; {
	case !m.Profile.Test && m.Target.Kind[0] == "bin":
		return name, m.Executable, nil
	case !m.Profile.Test: // an example that has no tests
		return "", "", nil
	case m.Target.Kind[0] == "lib":
		name = "lib"
	}
	return filepath.Base(filepath.Dir(m.ManifestPath)) + "-" + name, m.Executable, nil
}

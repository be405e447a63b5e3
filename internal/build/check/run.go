// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// vetCommands are the checks of the sources by programs of Go's. The magefile
// is behind a build tag.
var vetCommands = []struct {
	what string
	args []string
}{
	{"go vet", []string{"go", "vet", "./..."}},
	{"go vet, magefile", []string{"go", "vet", "-tags=mage", "."}},
	{"staticcheck", []string{"go", "tool", "staticcheck", "./..."}},
	{"staticcheck, magefile", []string{"go", "tool", "staticcheck", "-tags=mage", "."}},
}

// Vet runs go vet and the staticcheck that go.mod pins over all packages and
// over the magefile. What they find goes to out.
func Vet(ctx context.Context, root string, out io.Writer, progress *term.Reporter) error {
	for _, c := range vetCommands {
		step, through := progress.Step(c.what), progress.Through(out)
		err := process.Command{Args: c.args, Dir: root, Stdout: through, Stderr: through}.Run(ctx)
		step.End(err)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c.args, " "), err)
		}
	}
	return nil
}

// Test runs the tests of all packages against the library at the absolute
// path given. A line for each package goes to out, what failed tests wrote,
// what was skipped and why, and last the number of tests that passed and
// failed.
func Test(ctx context.Context, root, library string, out io.Writer, progress *term.Reporter) error {
	packages, err := listPackages(ctx, root)
	if err != nil {
		return err
	}
	commands, err := testArgs(packages)
	if err != nil {
		return err
	}
	bar := progress.Bar("test packages", int64(len(packages)), term.Count)
	err = runTests(ctx, root, commands, append(os.Environ(), "SPARSEK_LIBRARY="+library), progress.Through(out), bar)
	bar.End(err)
	return err
}

// runTests runs commands that write as go test -json does, up to the first
// that fails. bar counts the packages.
func runTests(ctx context.Context, root string, commands [][]string, env []string, out io.Writer, bar *term.Bar) (err error) {
	one := shared{new(sync.Mutex), out}
	log := newTestLog(one, bar)
	defer func() { err = errors.Join(err, log.finish()) }()
	for _, args := range commands {
		command := process.Command{Args: args, Dir: root, Stdout: log, Stderr: one, Env: env}
		if err := command.Run(ctx); err != nil {
			return fmt.Errorf("tests: %w", err)
		}
	}
	return nil
}

// packageTimeout is the limit of one package: with the race detector on two
// cores the wrapper's tests take 8 minutes, and Go's own limit is 10.
const packageTimeout = 30 * time.Minute

// testArgs are the commands that test packages, each of them once. Results are
// never taken from Go's cache, which does not see that the library changed.
func testArgs(packages []goPackage) ([][]string, error) {
	plain := []string{"go", "test", "-json", "-count=1", "-timeout=" + packageTimeout.String()}
	race := append(slices.Clone(plain), "-race")
	noPlain, noRace := len(plain), len(race)
	for _, p := range packages {
		raced, err := p.raced()
		if err != nil {
			return nil, err
		}
		if raced {
			race = append(race, p.ImportPath)
		} else {
			plain = append(plain, p.ImportPath)
		}
	}
	var commands [][]string
	if len(plain) > noPlain {
		commands = append(commands, plain)
	}
	if len(race) > noRace {
		commands = append(commands, race)
	}
	return commands, nil
}

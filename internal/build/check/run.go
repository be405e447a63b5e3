// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// raced are the packages whose code runs in several goroutines: their tests
// run under the race detector, the others', being quicker, without.
var raced = []string{"/wrapper", "/internal/toolchain/fetch", "/internal/sys/term", "/internal/sys/process",
	"/internal/build/jobs", "/internal/build/stamp"}

// Vet runs go vet over all packages and over the magefile, and staticcheck
// where it is installed. What they find goes to out.
func Vet(ctx context.Context, root string, out io.Writer) error {
	commands := [][]string{{"go", "vet", "./..."}, {"go", "vet", "-tags=mage", "."}}
	if program, err := exec.LookPath("staticcheck"); err == nil {
		commands = append(commands, []string{program, "./..."})
	}
	for _, args := range commands {
		if err := (process.Command{Args: args, Dir: root, Stdout: out, Stderr: out}).Run(ctx); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// Test runs the tests of all packages against the library at the absolute
// path given. What go test says goes to out, and what was skipped and why.
func Test(ctx context.Context, root, library string, out io.Writer) error {
	list, err := process.Command{Args: []string{"go", "list", "./..."}, Dir: root}.Output(ctx)
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	return runTests(ctx, root, testArgs(strings.Fields(list)), append(os.Environ(), "SPARSEK_LIBRARY="+library), out)
}

// runTests runs commands that write as go test -json does, up to the first
// that fails.
func runTests(ctx context.Context, root string, commands [][]string, env []string, out io.Writer) (err error) {
	one := shared{new(sync.Mutex), out}
	log := newTestLog(one)
	defer func() { err = errors.Join(err, log.finish()) }()
	for _, args := range commands {
		command := process.Command{Args: args, Dir: root, Stdout: log, Stderr: one, Env: env}
		if err := command.Run(ctx); err != nil {
			return fmt.Errorf("tests: %w", err)
		}
	}
	return nil
}

// testArgs are the commands that test packages, each of them once. Results are
// never taken from Go's cache, which does not see that the library changed.
func testArgs(packages []string) [][]string {
	isRaced := func(name string) bool {
		return slices.ContainsFunc(raced, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
	}
	plain := []string{"go", "test", "-json", "-count=1"}
	race := []string{"go", "test", "-json", "-count=1", "-race"}
	noPlain, noRace := len(plain), len(race)
	for _, name := range packages {
		if isRaced(name) {
			race = append(race, name)
		} else {
			plain = append(plain, name)
		}
	}
	var commands [][]string
	if len(plain) > noPlain {
		commands = append(commands, plain)
	}
	if len(race) > noRace {
		commands = append(commands, race)
	}
	return commands
}

// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// goFlags make Go's programs small and independent of the place where they are
// built. The library reports the commit; Go need not read it.
func goFlags() []string { return []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"} }

// programArgs is the command that makes the program.
func programArgs(out string) []string {
	args := append([]string{"go", "build"}, goFlags()...)
	return append(args, "-o", out, "./cmd/sparsek")
}

// testProgramsArgs is the command that makes the test programs of packages.
func testProgramsArgs(dir string, packages []string) []string {
	args := append([]string{"go", "test", "-c"}, goFlags()...)
	args = append(args, "-o", dir+"/")
	return append(args, packages...)
}

// MakeProgram makes build/bin/sparsek. Go itself knows what is up to date.
func MakeProgram(ctx context.Context, root string, progress *term.Reporter) error {
	unlock, err := lock(ctx, root, progress)
	if err != nil {
		return err
	}
	defer unlock()
	return runGo(ctx, root, "the program", programArgs(Program), progress)
}

// testedThere are the packages that examine the build's results, besides those
// that import the first of them.
var testedThere = []string{module + "/wrapper", module + "/internal/build/kernelreport"}

// testedHere are packages that use only the library's types, or only its CPU
// back-end: a GPU adds nothing to their tests, and some link much.
var testedHere = []string{module + "/internal/bench/report", module + "/internal/bench/roofline", module + "/internal/bench/shapemap",
	module + "/internal/cli", module + "/internal/gate/pair", module + "/examples/training"}

const module = "github.com/sparsek/sparsek"

// listImports is the command that prints each package with tests and, behind
// it on the line, all that the tests import.
func listImports() []string {
	return []string{"go", "list", "-f", `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}` +
		`{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}{{end}}`, "./..."}
}

// portableTests selects the packages whose tests are worth running on another
// machine, from the output of listImports.
func portableTests(list string) []string {
	var packages []string
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) == 0 || slices.Contains(testedHere, words[0]) {
			continue
		}
		if slices.Contains(testedThere, words[0]) || slices.Contains(words[1:], testedThere[0]) {
			packages = append(packages, words[0])
		}
	}
	return packages
}

// MakeTestPrograms compiles the tests of the packages that use the library or
// look at it into build/test, whole or not at all. They hold their data and
// run on another machine from any folder.
func MakeTestPrograms(ctx context.Context, root string, progress *term.Reporter) error {
	unlock, err := lock(ctx, root, progress)
	if err != nil {
		return err
	}
	defer unlock()
	list, err := process.Command{Args: listImports(), Dir: root}.Output(ctx)
	if err != nil {
		return fmt.Errorf("listing packages with tests: %w", err)
	}
	made := filepath.Join(tempDir, "test")
	defer os.RemoveAll(filepath.Join(root, tempDir))
	if err := os.RemoveAll(filepath.Join(root, made)); err != nil {
		return fmt.Errorf("making test programs: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(root, made), 0o777); err != nil {
		return fmt.Errorf("making test programs: %w", err)
	}
	if err := runGo(ctx, root, "the test programs", testProgramsArgs(made, portableTests(list)), progress); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, testDir)); err != nil {
		return fmt.Errorf("making test programs: %w", err)
	}
	if err := os.Rename(filepath.Join(root, made), filepath.Join(root, testDir)); err != nil {
		return fmt.Errorf("making test programs: %w", err)
	}
	return nil
}

// runGo runs a go command and shows all its output where it fails.
func runGo(ctx context.Context, root, what string, args []string, progress *term.Reporter) error {
	var output bytes.Buffer
	step := progress.Step("build " + what)
	err := process.Command{Args: args, Dir: root, Stdout: &output, Stderr: &output}.Run(ctx)
	step.End(err)
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", what, err, strings.TrimRight(output.String(), "\n"))
	}
	return nil
}

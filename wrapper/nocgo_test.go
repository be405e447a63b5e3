// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// needGo skips a test where there is no go command, or no source tree: a compiled test program may run anywhere.
func needGo(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("skipped: there is no go command")
	}
	if _, err := os.Stat("../go.mod"); err != nil {
		t.Skip("skipped: not run in the source tree")
	}
}

// goWithoutCgo runs the go command as on a machine without a C compiler.
func goWithoutCgo(args ...string) (output string, err error) {
	command := exec.Command("go", args...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	return string(out), err
}

// Without cgo a program that imports the package fails with one sentence that says so.
func TestWithoutCgo(t *testing.T) {
	needGo(t)
	const sentence = `"sparsek needs cgo: set CGO_ENABLED=1 and install a C compiler"`
	for _, args := range [][]string{{"build", "."}, {"vet", "./timing"}, {"build", "./tuning"}} {
		out, err := goWithoutCgo(args...)
		if err == nil || strings.Count(out, sentence) != 1 || strings.Contains(out, "undefined") {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// What applications need without the library needs no cgo, either.
func TestPackagesWithoutCgo(t *testing.T) {
	needGo(t)
	for _, command := range []string{"build", "vet"} {
		if out, err := goWithoutCgo(command, "./bsr", "./matio", "./half"); err != nil {
			t.Errorf("go %s: %v\n%s", command, err, out)
		}
	}
}

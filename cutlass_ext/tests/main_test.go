// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/testdisk"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// childTask tells a copy of the test program what to do instead of testing, a
// name of tasks, with its arguments.
const childTask = "SPARSEK_TEST_TASK"

func TestMain(m *testing.M) {
	task := tasks[os.Getenv(childTask)]
	if task == nil {
		code := m.Run()
		tuning.remove()
		os.Exit(code)
	}
	testdisk.Exit(task(os.Args[1], os.Args[2]))
}

// rounds is how often a test tries its luck.
func rounds(short, longer int) int {
	if os.Getenv("SPARSEK_LONG") != "" {
		return longer
	}
	return short
}

// programOfLibrary compiles a C program that opens the built library, whose path it returns as well. Skips where there
// is none.
func programOfLibrary(t *testing.T, source string, args ...string) (program, library string) {
	t.Helper()
	found, err := sparsek.Default()
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(t.TempDir(), "program")
	args = append([]string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", "../include", "-o", program, source, "-ldl"}, args...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program, found.Path()
}

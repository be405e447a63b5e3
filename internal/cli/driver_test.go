// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programArgs tells a copy of the test program to be the program, with these arguments.
const programArgs = "SPARSEK_TEST_PROGRAM_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(programArgs); args != "" {
		os.Exit(Main(context.Background(), strings.Fields(args), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// oldDriver is a driver that serves CUDA 12.4 and shows a GPU.
const oldDriver = `
#include <string.h>
int cuDriverGetVersion(int *out) { return *out = 12040, 0; }
int cuInit(unsigned flags) { return flags != 0; }
int cuDeviceGetCount(int *out) { return *out = 1, 0; }
int cuDeviceGet(int *out, int index) { return *out = index, 0; }
int cuDeviceGetName(char *out, int size, int device) { return strncpy(out, "Test GPU", size), device; }
int cuDeviceGetAttribute(int *out, int attribute, int device) { return *out = attribute == 75 ? 9 : 0, device; }
`

// A driver that is too old for this library's CUDA: a product runs on the CPU and says why, and one on a GPU fails with
// what to do.
func TestOldDriver(t *testing.T) {
	lib := needLibrary(t)
	if build, err := lib.BuildInfo(); err != nil || build.CUDA == "" {
		t.Skipf("skipped: the library was built without CUDA (%v)", err)
	}
	folder := t.TempDir()
	source := write(t, filepath.Join(folder, "driver.c"), oldDriver)
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", filepath.Join(folder, "libcuda.so.1"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const needed = "the NVIDIA driver serves CUDA 12.4 at most, and this library needs CUDA 13.0: update the driver to 580 or newer"
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"run --pattern random --size 64x64x64 --block 8 --dtype fp32", exitOK, needed, "warning: on the CPU, not a GPU: " + needed},
		{"run --pattern random --size 64x64x64 --block 8 --dtype fp32 --device cpu", exitOK, "the CPU was asked for", ""},
		{"run --pattern random --size 64x64x64 --block 8 --dtype fp32 --device gpu", exitNoDevice, "", needed},
		{"info", exitOK, "CPU: " + needed, ""},
		{"doctor", exitNoDevice, "serves CUDA 12.4", ""},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), programArgs+"="+c.args, "SPARSEK_LIBRARY="+lib.Path(), "SPARSEK_TUNING_CACHE=off",
			"LD_LIBRARY_PATH="+folder+":"+os.Getenv("LD_LIBRARY_PATH"))
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: code %d, want %d\n%s%s", c.args, code, c.code, &stdout, &stderr)
		}
		if !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: want %q and %q, got\n%s%s", c.args, c.stdout, c.stderr, &stdout, &stderr)
		}
		if c.stderr == "" && strings.Contains(stderr.String(), "warning") {
			t.Errorf("%s: %s", c.args, &stderr)
		}
	}
}

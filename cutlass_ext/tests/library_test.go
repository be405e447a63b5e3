// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What NVIDIA's libraries serve, and why not.
func TestObstacles(t *testing.T) {
	run(t, "testdata/obstacle_check.cpp", "../src/cuda/vendor/library_kernels.cpp")
}

// Where a library is looked for that is opened at run time, and what is said of one that is not there or is none.
func TestLibraries(t *testing.T) {
	root := t.TempDir()
	for path, which := range map[string]int{"new/libprobe.so.13": 13, "new/libprobe.so.12": -12, "plain/libprobe.so": 1,
		"nvidia/cu13/lib/libprobe.so.12": 14, "old/probe/lib/libprobe.so.12": 12} {
		makeLibrary(t, filepath.Join(root, path), fmt.Sprintf(`extern "C" int which(void) { return %d; }`, which))
	}
	makeLibrary(t, filepath.Join(root, "needing/libbeside.so.12"), `extern "C" int beside(void) { return 15; }`, "-Wl,-soname,libbeside.so.12")
	makeLibrary(t, filepath.Join(root, "needing/libprobe.so.12"), `extern "C" { int beside(void); int which(void) { return beside(); } }`,
		filepath.Join(root, "needing/libbeside.so.12"))
	for path, text := range map[string]string{"empty/readme": "", "garbage/libprobe.so.12": "no library"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, compile(t, "testdata/library_check.cpp", "../src/cuda/runtime_library.cpp", "-ldl"), root)
}

// makeLibrary compiles C++ into a shared library.
func makeLibrary(t *testing.T, path, text string, args ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "library.cpp")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-shared", "-fPIC", "-o", path, source}, args...)
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Exceptions where libc is too old to say what code they pass.
func TestFindObject(t *testing.T) {
	run(t, "testdata/find_object_check.cpp", "-static-libgcc", "-static-libstdc++")
}

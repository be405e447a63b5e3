// SPDX-License-Identifier: Apache-2.0

package repro

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/build"
)

// checkout is a build of one source file that has a number in its data, or
// with a text of its own instead of an object.
func newCheckout(t *testing.T, number int, text string) string {
	t.Helper()
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("skipped: no g++")
	}
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(cxx, args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	write("same.cpp", "int same() { return 1; }\n")
	write("number.cpp", fmt.Sprintf("extern const int number[];\nconst int number[] = {1, 2, %d};\n", number))
	write(objectDir+"/src/x", "")
	write("build/lib/x", "")
	run("-c", "-fPIC", "-o", objectDir+"/src/same.cpp.o", "same.cpp")
	run("-c", "-fPIC", "-o", objectDir+"/src/number.cpp.o", "number.cpp")
	run("-shared", "-o", build.Library, objectDir+"/src/same.cpp.o", objectDir+"/src/number.cpp.o")
	if text != "" {
		write(objectDir+"/src/number.cpp.o", text)
	}
	return root
}

func TestSameBuilds(t *testing.T) {
	sum, err := compareBuilds(newCheckout(t, 3, ""), newCheckout(t, 3, ""))
	if err != nil || len(sum) != 64 {
		t.Errorf("%q, %v", sum, err)
	}
}

func TestDifferentBuilds(t *testing.T) {
	_, err := compareBuilds(newCheckout(t, 3, ""), newCheckout(t, 4, ""))
	var different *DifferentError
	if !errors.As(err, &different) {
		t.Fatalf("got %v", err)
	}
	want := objectDir + `/src/number.cpp.o section .rodata at byte 8: "\x03\x00\x00\x00" and "\x04\x00\x00\x00"`
	if got := different.Differences[0].String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if !strings.Contains(err.Error(), build.Library+" section .rodata") {
		t.Errorf("the library's section is not named:\n%v", err)
	}
	if strings.Contains(err.Error(), "same.cpp.o") || strings.Contains(err.Error(), ".text") {
		t.Errorf("what is the same is named:\n%v", err)
	}
}

func TestDifferencesThatAreNotInSections(t *testing.T) {
	a, b := newCheckout(t, 3, "text"), newCheckout(t, 4, "longer text")
	if err := os.WriteFile(filepath.Join(b, objectDir, "more.o"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := compareBuilds(a, b)
	for _, want := range []string{
		objectDir + "/more.o: only one of the builds made it",
		objectDir + `/src/number.cpp.o at byte 0: "text" and "longer text"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	shorter := compareFiles("x", []byte("abc"), []byte("abcd"))
	if len(shorter) != 1 || shorter[0].Offset != -1 || !strings.Contains(shorter[0].Detail, "3 bytes and 4 bytes") {
		t.Errorf("one longer: %v", shorter)
	}
}

func TestNoLibrary(t *testing.T) {
	if _, err := compareBuilds(t.TempDir(), t.TempDir()); err == nil || !strings.Contains(err.Error(), build.Library) {
		t.Errorf("got %v", err)
	}
}

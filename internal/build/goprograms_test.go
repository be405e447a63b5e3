// SPDX-License-Identifier: Apache-2.0

package build

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGoArgs(t *testing.T) {
	program := programArgs("out")
	tests := testProgramsArgs("dir", []string{"m/a", "m/b"})
	for _, args := range [][]string{program, tests} {
		if !slices.Contains(args, "-trimpath") || !slices.Contains(args, "-buildvcs=false") {
			t.Errorf("not reproducible: %q", args)
		}
	}
	if !slices.Equal(program[len(program)-3:], []string{"-o", "out", "./cmd/sparsek"}) {
		t.Errorf("got %q", program)
	}
	if !slices.Equal(tests[len(tests)-4:], []string{"-o", "dir/", "m/a", "m/b"}) {
		t.Errorf("got %q", tests)
	}
}

func TestPortableTests(t *testing.T) {
	got := portableTests(module + "/wrapper fmt\n" + module + "/internal/bench fmt " + module + "/wrapper\n\n" +
		module + "/internal/cli fmt " + module + "/wrapper\n" +
		module + "/internal/lock fmt\n" + module + "/internal/build " + module + "/internal/build/kernelreport\n" +
		module + "/internal/build/kernelreport fmt\n" + module + "/internal/bench/report " + module + "/wrapper\n")
	want := []string{module + "/wrapper", module + "/internal/bench", module + "/internal/build/kernelreport"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A package that was moved would silently drop out of the lists.
func TestListedPackagesExist(t *testing.T) {
	for _, name := range slices.Concat(testedThere, testedHere) {
		dir := "../.." + strings.TrimPrefix(name, module)
		if tests, err := filepath.Glob(dir + "/*_test.go"); err != nil || len(tests) == 0 {
			t.Errorf("%s has no tests: %v", name, err)
		}
	}
}

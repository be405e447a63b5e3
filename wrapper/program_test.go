// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/wrapper/half"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// The program of docs/applications.md is built in a module of its own, as an application's is, and run.
func TestProgramOfAnApplication(t *testing.T) {
	lib := library(t)
	needGo(t)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var code string
	for _, snippet := range snippetsIn(pages(t)["docs/applications.md"]) {
		if strings.HasPrefix(snippet, "package main") {
			code = snippet
		}
	}
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go", code)
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write("go.sum", string(sums))
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(mod), "\ngo ")
	version, _, _ = strings.Cut(version, "\n")
	write("go.mod", "module application\n\ngo "+version+"\n\nrequire github.com/sparsek/sparsek v0.0.0\n\nreplace github.com/sparsek/sparsek => "+root+"\n")
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.Command(name, args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "SPARSEK_LIBRARY="+lib.Path(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("go", "build", "-o", "application", ".")
	matrix := filepath.Join(root, "wrapper", "matio", "testdata", "scipy", "csr.npz")
	out := run(filepath.Join(folder, "application"), matrix)
	// With a B of ones, the first row of C is the sum of A's.
	dense := must(matio.ReadDense(matrix+".expect.npy", half.BFloat16From64))(t)
	var want float32
	for _, v := range dense.Data[:dense.Cols] {
		want += v.Float32()
	}
	var got float32
	var backend string
	if _, err := fmt.Sscan(out, &got, &backend); err != nil || math.Abs(float64(got-want)) > 1e-4*math.Abs(float64(want)) || want == 0 {
		t.Errorf("the program printed %q, want %g and the back-end", out, want)
	}
}

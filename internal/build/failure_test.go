// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// What the compiler's end means, by what g++ and nvcc's parts were seen to say.
func TestDiagnose(t *testing.T) {
	const full, memory, crash = "the disk is full", "out of memory", "the compiler crashed"
	for _, test := range []struct {
		name, log string
		code      int
		err       error
		want      string // what the reason begins with; empty: the source is wrong
	}{
		{name: "a mistake", log: "x.cu(3): error: expected a \";\"", code: 2},
		{name: "a mistake in words like ours", log: "error: 'Killed' was not declared", code: 1},
		{"g++ on a full disk", "<built-in>: fatal error: when writing output to x.cpp1.ii: No space left on device", 1, nil, full},
		{"cudafe++ on a full disk", "string_view.tcc(76): catastrophic error: error while writing generated C++ file: No space left on device", 4, nil, full},
		{"no quota", "as: x.o: Disk quota exceeded", 1, nil, full},
		{"not started, no disk", "", -1, &os.PathError{Op: "fork/exec", Path: "nvcc", Err: syscall.ENOSPC}, full},
		{"cc1plus killed", "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", 1, nil, memory},
		{"cicc killed", "Killed", 137, nil, memory},
		{"cudafe++ without memory", "cuda_fp8.hpp(926): catastrophic error: out of memory", 4, nil, memory},
		{"g++ without memory", "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes", 1, nil, memory},
		{"not started, no memory", "", -1, fmt.Errorf("fork/exec nvcc: %w", syscall.ENOMEM), memory},
		{"no process available", "", -1, fmt.Errorf("fork/exec nvcc: %w", syscall.EAGAIN), memory},
		{"cicc crashed", "Segmentation fault", 139, nil, crash},
		{"aborted", "", 134, nil, crash},
		{"g++ crashed", "x.cpp:1: internal compiler error: in foo, at bar.cc:1", 1, nil, crash},
		{"a limit", "", 128 + 25, nil, "a limit of the shell"},
		{"stopped", "", 128 + 15, nil, "stopped by a signal"},
	} {
		err := test.err
		if err == nil {
			err = errors.New("exit status")
		}
		got := diagnose(&process.Error{Program: "nvcc", Code: test.code, Err: err}, test.log, 3<<30)
		if (test.want == "") != (got == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if test.want == memory && !strings.Contains(got, "3.2 GB") && !strings.Contains(got, "3.0 GiB") {
			t.Errorf("%s: it does not say how much is needed: %q", test.name, got)
		}
	}
}

// What a user sees of a compiler that fails through no fault of the source.
func TestCompilerMisfortunes(t *testing.T) {
	for word, want := range map[string]string{
		"crashes":  "the compiler crashed",
		"killed":   "out of memory",
		"diskfull": "the disk is full",
	} {
		tr := newTree(t)
		tr.write(kernelsFile, strings.Replace(tr.read(kernelsFile), "simt_bf16", word, 1))
		err := MakeLibrary(t.Context(), tr.opts)
		if err == nil {
			t.Fatalf("%s: no error", word)
		}
		first, _, _ := strings.Cut(err.Error(), "\n")
		if !strings.HasPrefix(first, "build/gen/"+word+".cu (kernel "+word+"): "+want) {
			t.Errorf("%s: got %q, want the file, the kernel and %q first", word, first, want)
		}
		if tr.exists(objectPath("build/gen/"+word+".cu")) || tr.exists(Library) {
			t.Errorf("%s: left something that looks finished", word)
		}
		tr.write(kernelsFile, strings.Replace(tr.read(kernelsFile), word, "fixed", 1))
		if err := MakeLibrary(t.Context(), tr.opts); err != nil {
			t.Errorf("%s, then fixed: %v", word, err)
		}
	}
}

func TestFullDiskUnderTheBuildItself(t *testing.T) {
	err := explainFullDisk(fmt.Errorf("recording x.o: %w", &os.PathError{Op: "write", Path: "x.o.stamp", Err: syscall.ENOSPC}))
	if !strings.Contains(err.Error(), "free some space") || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want the fix", err)
	}
	other := errors.New("other")
	if got := explainFullDisk(other); got != other {
		t.Errorf("got %v", got)
	}
	if explainFullDisk(nil) != nil {
		t.Error("an error of none")
	}
}

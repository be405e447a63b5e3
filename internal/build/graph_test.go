// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
	"github.com/sparsek/sparsek/internal/build/jobs"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
	pins "github.com/sparsek/sparsek/internal/toolchain/lock"
)

//go:embed testdata/compiler.sh
var fakeCompiler []byte

// tree is a checkout in small, with a stand-in for the toolchain.
type tree struct {
	t     *testing.T
	root  string
	calls string
	opts  Options
}

const (
	planSource     = "cutlass_ext/src/plan/plan.cpp"
	validateSource = "cutlass_ext/src/cuda/validate.cu"
	instanceSource = "build/gen/simt_bf16.cu"
	registrySource = "build/gen/registry.cpp"
	tuningSource   = "build/gen/tuning_table.cpp"
	planHeader     = "cutlass_ext/src/plan/plan.h"
	tableHeader    = "cutlass_ext/src/tune/shipped_table.h"
)

var allSources = []string{instanceSource, registrySource, tuningSource, buildInfoSource, validateSource, planSource}

var fakeLock = &pins.Lock{
	CUTLASS: pins.CUTLASS{Version: "4", Commit: "c0ffee", Include: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
		Tools: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
	CUDA: pins.CUDA{Wheels: []pins.Package{{Name: "nvcc", Version: "13", File: "nvcc-13.whl", SHA256: "abc"}}},
}

func newTree(t *testing.T) *tree {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("skipped: no shell for the stand-in compiler")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	tr := &tree{t: t, root: root, calls: filepath.Join(outside, "calls")}
	for name, text := range map[string]string{
		headerFile: "header\n",
		kernelsFile: `{"comment": "", "kernels": [{"name": "simt_bf16", "family": "simt", "dtype": "bf16", "tile": [0, 64, 1],
			"stages": 1, "block_m": 1, "block_m_multiple": true, "block_k_multiple": 1, "why": "always"}]}`,
		buildInfoSource:                 "#include \"sparsek.h\"\n",
		planSource:                      "#include \"plan/plan.h\"\n",
		validateSource:                  "#include \"cuda/kernel.h\"\n",
		"cutlass_ext/src/cuda/simt.cuh": "#include \"cuda/kernel.h\"\n#include \"collective/policy.hpp\"\n",
		"cutlass_ext/src/cuda/kernel.h": "#include \"plan/plan.h\"\n",
		planHeader:                      "#include \"sparsek.h\"\n",
		tableHeader:                     "#include \"sparsek.h\"\n",
		"collective/policy.hpp":         "policy\n",
		"LICENSE":                       "licence\n",
	} {
		tr.write(name, text)
	}
	compiler := filepath.Join(outside, "compiler")
	if err := os.WriteFile(compiler, fakeCompiler, 0o777); err != nil {
		t.Fatal(err)
	}
	nothing := filepath.Join(outside, "nothing")
	if err := os.WriteFile(nothing, []byte("#!/bin/sh\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CALLS", tr.calls)
	t.Setenv(LauncherVariable, "off")
	cuda := filepath.Join(outside, "cuda")
	nvcc := filepath.Join(cuda, "bin", "nvcc")
	if err := errors.Join(os.MkdirAll(filepath.Dir(nvcc), 0o777), os.Symlink(compiler, nvcc)); err != nil {
		t.Fatal(err)
	}
	tr.opts = Options{Root: root, CXX: compiler, Limits: jobs.Limits{Cores: 2, Memory: 1 << 40},
		Toolchain: &toolchain.Toolchain{CUDA: cuda, CUTLASSInclude: filepath.Join(outside, "cutlass"), NVCC: nvcc,
			Cuobjdump: nothing, Nvdisasm: nothing, CUDAVersion: "13", CUTLASSVersion: "4", Digest: "d", Lock: fakeLock}}
	return tr
}

func (tr *tree) write(name, text string) {
	tr.t.Helper()
	path := filepath.Join(tr.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		tr.t.Fatal(err)
	}
}

// ran returns the compilers' calls since it was last asked, sorted.
func (tr *tree) ran() []string {
	tr.t.Helper()
	text, err := os.ReadFile(tr.calls)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tr.t.Fatal(err)
	}
	_ = os.Remove(tr.calls)
	calls := strings.Fields(string(text))
	slices.Sort(calls)
	return calls
}

// expect builds and compares what was run for it.
func (tr *tree) expect(when string, want ...string) {
	tr.t.Helper()
	if err := MakeLibrary(tr.t.Context(), tr.opts); err != nil {
		tr.t.Fatalf("%s: %v", when, err)
	}
	want = slices.Sorted(slices.Values(want))
	if got := tr.ran(); !slices.Equal(got, want) {
		tr.t.Errorf("%s: ran %q, want %q", when, got, want)
	}
	if _, err := os.Stat(filepath.Join(tr.root, tempDir)); !errors.Is(err, fs.ErrNotExist) {
		tr.t.Errorf("%s: left %s behind", when, tempDir)
	}
}

func (tr *tree) exists(name string) bool {
	_, err := os.Stat(filepath.Join(tr.root, name))
	return err == nil
}

func TestBuildsWhatChanged(t *testing.T) {
	tr := newTree(t)
	everything := append(slices.Clone(allSources), "link")
	tr.expect("first", everything...)
	for _, name := range []string{Library, Provenance, Header, ReportFile, "build/licenses/LICENSE"} {
		if !tr.exists(name) {
			t.Errorf("no %s", name)
		}
	}
	tr.expect("again")

	now := time.Now()
	if err := os.Chtimes(filepath.Join(tr.root, planHeader), now, now); err != nil {
		t.Fatal(err)
	}
	tr.expect("touched, content the same")

	tr.write(planHeader, "#include \"sparsek.h\"\nchanged\n")
	tr.expect("a header that all but one include", planSource, registrySource, validateSource, instanceSource, "link")

	tr.write("collective/policy.hpp", "another policy\n")
	tr.expect("a header of the kernels", instanceSource, "link")

	tr.write(headerFile, "another header\n")
	tr.expect("the ABI", everything...)
	if text, err := os.ReadFile(filepath.Join(tr.root, Header)); err != nil || string(text) != "another header\n" {
		t.Errorf("the copied header is %q, %v", text, err)
	}

	tr.write(tuningDir+"/h200.txt", "measured\n")
	tr.expect("a tuning table", tuningSource, "link")

	tr.write("cutlass_ext/src/plan/new.cpp", "new\n")
	tr.expect("a new source", "cutlass_ext/src/plan/new.cpp", "link")
	if err := os.Remove(filepath.Join(tr.root, "cutlass_ext/src/plan/new.cpp")); err != nil {
		t.Fatal(err)
	}
	tr.expect("a source gone", "link")
	if tr.exists(objectPath("cutlass_ext/src/plan/new.cpp")) {
		t.Error("its object stayed")
	}

	tr.write(objectPath(planSource), "damaged")
	tr.expect("a damaged object", planSource)
	tr.write(Library, "damaged")
	tr.expect("a damaged library", "link")

	tr.opts.Toolchain.Digest = "other"
	tr.expect("another toolchain", everything...)
	t.Setenv("COMPILER_VERSION", "2.0")
	tr.expect("another compiler", everything...)
	t.Setenv("LINKER_VERSION", "2.0")
	tr.expect("another linker", everything...)
}

func TestSameHeaderElsewhereStaysFresh(t *testing.T) {
	tr := newTree(t)
	tr.expect("first", append(slices.Clone(allSources), "link")...)
	moved := tr.root + "-moved"
	if err := os.Rename(tr.root, moved); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(moved) })
	tr.root, tr.opts.Root = moved, moved
	tr.expect("moved")
}

func TestFailingCompile(t *testing.T) {
	tr := newTree(t)
	tr.opts.Limits.Cores = 1
	tr.write(planSource, "BROKEN\n")
	err := MakeLibrary(t.Context(), tr.opts)
	if err == nil {
		t.Fatal("no error")
	}
	if !strings.HasPrefix(err.Error(), planSource+": ") || !strings.Contains(err.Error(), "it is broken\nand so on") {
		t.Errorf("got %q, want the file first and all that the compiler said", err)
	}
	if tr.exists(objectPath(planSource)) || tr.exists(Library) {
		t.Error("a failed build left something that looks finished")
	}
	tr.ran()
	tr.write(planSource, "fixed\n")
	tr.expect("fixed: what had been finished is kept", planSource, "link")
}

func TestAFailureAfterASuccessKeepsNoStamp(t *testing.T) {
	tr := newTree(t)
	tr.expect("first", append(slices.Clone(allSources), "link")...)
	tr.write(planSource, "BROKEN\n")
	if err := MakeLibrary(t.Context(), tr.opts); err == nil {
		t.Fatal("no error")
	}
	tr.ran()
	tr.write(planSource, "fixed\n")
	tr.expect("fixed", planSource, "link")
}

func TestCancelledBuild(t *testing.T) {
	tr := newTree(t)
	tr.write(planSource, "WAIT\n")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(tr.calls + ".waiting"); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if err := MakeLibrary(ctx, tr.opts); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the cancel", err)
	}
	for _, name := range []string{objectPath(planSource), stampPath(objectPath(planSource)), Library, tempDir} {
		if tr.exists(name) {
			t.Errorf("left %s behind", name)
		}
	}
	tr.ran()
	tr.write(planSource, "no more\n")
	if err := MakeLibrary(t.Context(), tr.opts); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(tr.ran(), planSource) {
		t.Error("the interrupted file was not compiled")
	}
}

// What a build leaves that was killed without a chance to clean up.
func TestAfterAKilledBuild(t *testing.T) {
	tr := newTree(t)
	tr.expect("first", append(slices.Clone(allSources), "link")...)
	tr.write(tempDir+"/123/"+planSource+"/plan.cpp.o", "half")
	if err := os.Remove(filepath.Join(tr.root, stampPath(objectPath(planSource)))); err != nil {
		t.Fatal(err)
	}
	tr.expect("an object without its stamp", planSource)
}

func TestSourceWrittenWhileItIsCompiled(t *testing.T) {
	tr := newTree(t)
	tr.write(planSource, "UNSTEADY\n")
	tr.expect("it changes once", append(slices.Clone(allSources), planSource, "link")...)
	tr.expect("again")
	tr.write(planSource, "RESTLESS\n")
	err := MakeLibrary(t.Context(), tr.opts)
	if err == nil || !strings.HasPrefix(err.Error(), planSource) {
		t.Errorf("it changes for ever: %v", err)
	}
	if ran := tr.ran(); slices.Contains(ran, "link") {
		t.Errorf("linked an object that is in no unit: %q", ran)
	}
}

// A clock that was wrong once must not make files stale for ever.
func TestFilesFromTheFuture(t *testing.T) {
	tr := newTree(t)
	future := time.Now().Add(1000 * time.Hour)
	if err := os.Chtimes(filepath.Join(tr.root, planSource), future, future); err != nil {
		t.Fatal(err)
	}
	tr.expect("first", append(slices.Clone(allSources), "link")...)
	tr.expect("again")
}

func TestACommitCompilesOneFile(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: no git")
	}
	tr := newTree(t)
	tr.expect("no repository", append(slices.Clone(allSources), "link")...)
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", tr.root, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v\n%s", err, out)
		}
	}
	tr.write(".gitignore", "/build/\n")
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	tr.expect("a commit", buildInfoSource, "link")
	tr.write("notes.txt", "not built from")
	tr.expect("notes")
	tr.write(planSource, "changed")
	tr.expect("changed", buildInfoSource, planSource, "link")
}

func TestBuildsWaitForEachOther(t *testing.T) {
	tr := newTree(t)
	failures := make(chan error)
	for range 2 {
		go func() { failures <- MakeLibrary(t.Context(), tr.opts) }()
	}
	for range 2 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	want := slices.Sorted(slices.Values(append(slices.Clone(allSources), "link")))
	if got := tr.ran(); !slices.Equal(got, want) {
		t.Errorf("two builds ran %q, want %q", got, want)
	}
	for range 2 {
		if err := Clean(t.Context(), tr.root, nil); err != nil {
			t.Error(err)
		}
	}
	if tr.exists(buildDir) || !tr.exists(planSource) {
		t.Error("clean removed too little or too much")
	}
}

func TestNoHostCompiler(t *testing.T) {
	tr := newTree(t)
	tr.opts.CXX = "no-such-compiler"
	if err := MakeLibrary(t.Context(), tr.opts); err == nil || !strings.Contains(err.Error(), "install g++") {
		t.Errorf("got %v, want the fix", err)
	}
}

// The progress of a build: one line for all that is compiled, none twice for a
// failure.
func TestProgress(t *testing.T) {
	tr := newTree(t)
	var said bytes.Buffer
	tr.opts.Progress = term.New(&said)
	tr.expect("first", append(slices.Clone(allSources), "link")...)
	for _, want := range []string{"done compile: 6 in ", "done link build/lib/libsparsek.so in ", "done report kernels: 2 in "} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is missing in\n%s", want, said.String())
		}
	}
	said.Reset()
	tr.expect("again")
	if said.Len() > 0 {
		t.Errorf("nothing to do, and it said\n%s", said.String())
	}
	tr.write(planSource, "BROKEN\n")
	if err := MakeLibrary(t.Context(), tr.opts); err == nil {
		t.Error("no error")
	}
	if said.Len() > 0 {
		t.Errorf("the caller reports the failure, and progress said\n%s", said.String())
	}
}

func TestWeight(t *testing.T) {
	collective := unit{source: "k.cu", device: true, kernel: "k", family: kernels.Collective}
	host := unit{source: "a.cpp"}
	if collective.weight(0) <= host.weight(0) {
		t.Error("a kernel of CUTLASS's takes less than a C++ file")
	}
	if got := host.weight(1234); got != 1234 {
		t.Errorf("got %d, want what the last build took", got)
	}
}

func TestCompileCommands(t *testing.T) {
	tr := newTree(t)
	n, err := WriteCompileCommands(t.Context(), tr.opts)
	if err != nil || n != len(allSources) {
		t.Fatalf("%d, %v", n, err)
	}
	if ran := tr.ran(); len(ran) > 0 {
		t.Errorf("compiled %q", ran)
	}
	var commands []compileCommand
	if err := json.Unmarshal([]byte(tr.read(CompileCommands)), &commands); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, c := range commands {
		files = append(files, c.File)
		if c.Directory != tr.root || c.Arguments[len(c.Arguments)-1] != c.File || !slices.Contains(c.Arguments, c.Output) {
			t.Errorf("got %+v", c)
		}
		if !tr.exists(c.File) {
			t.Errorf("there is no %s", c.File)
		}
		wanted := tr.opts.CXX
		if strings.HasSuffix(c.File, ".cu") {
			wanted = "clang++" // which its tools take for themselves
			if slices.Contains(c.Arguments, "-ccbin") || !slices.Contains(c.Arguments, "-I"+sourceDir) {
				t.Errorf("not for Clang: %q", c.Arguments)
			}
		}
		if c.Arguments[0] != wanted {
			t.Errorf("%s is compiled by %s", c.File, c.Arguments[0])
		}
	}
	slices.Sort(files)
	if want := slices.Sorted(slices.Values(allSources)); !slices.Equal(files, want) {
		t.Errorf("got %q, want %q", files, want)
	}
	if tr.exists(tempDir) {
		t.Error("left a temporary folder behind")
	}
}

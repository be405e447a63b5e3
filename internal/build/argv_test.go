// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sparsek/sparsek/internal/build/version"
)

func toolsAt(prefix string) tools {
	return tools{root: prefix + "/src", cxx: "g++", nvcc: prefix + "/cache/cuda/bin/nvcc", cuda: prefix + "/cache/cuda",
		cutlass: prefix + "/cache/cutlass/include"}
}

func drawUnit(t *rapid.T) unit {
	u := unit{device: rapid.Bool().Draw(t, "device")}
	u.source = "cutlass_ext/src/" + rapid.StringMatching(`[a-z]{1,8}/[a-z_]{1,12}`).Draw(t, "source")
	if u.device {
		u.source += ".cu"
	} else {
		u.source += rapid.SampledFrom([]string{"", "_avx2", "_avx512"}).Draw(t, "isa") + ".cpp"
	}
	return u
}

func TestCompileArgs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := drawUnit(t)
		a, b := toolsAt("/home/one"), toolsAt("/mnt/two/three")
		args := a.compileArgs(u, "out.o", "dep", nil)
		after := func(option string) string {
			i := slices.Index(args, option)
			if i < 0 || i+1 >= len(args) || slices.Contains(args[i+1:], option) {
				t.Fatalf("%s is not given once: %q", option, args)
			}
			return args[i+1]
		}
		if after("-o") != "out.o" || after("-MF") != "dep" || args[len(args)-1] != u.source {
			t.Errorf("wrong files in %q", args)
		}
		if (args[0] == a.nvcc) != u.device {
			t.Errorf("%s goes through %s", u.source, args[0])
		}
		if u.device && !slices.Contains(args, "--frandom-seed="+u.source) {
			t.Errorf("the seed is not the source's name: %q", args)
		}
		if u.device && after("-Xcudafe") != "--orig_src_path_name="+u.source {
			t.Errorf("the name that is hashed is not the source's: %q", args)
		}
		if want := prefixMapOption + "/home/one/src=.'"; u.device && !slices.Contains(args, want) {
			t.Errorf("no %s for the shell in %q", want, args)
		}
		// The order in which headers are found: ours before any other.
		if first := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "-I") }); args[first] != "-I"+includeDir {
			t.Errorf("%s comes first", args[first])
		}
		logical := a.logical(args)
		if diff := cmp.Diff(logical, b.logical(b.compileArgs(u, "out.o", "dep", nil))); diff != "" {
			t.Errorf("the command depends on where things lie:\n%s", diff)
		}
		if slices.ContainsFunc(logical, func(s string) bool { return strings.Contains(s, "/home/one") }) {
			t.Errorf("a folder of this machine in %q", logical)
		}
	})
}

func TestVectorInstructionsStayInTheirFiles(t *testing.T) {
	for source, want := range map[string][]string{
		"cutlass_ext/src/cpu/kernel_avx2.cpp":    {"-mavx2", "-mfma", "-mf16c"},
		"cutlass_ext/src/cpu/kernel_avx512.cpp":  {"-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mf16c"},
		"cutlass_ext/src/cpu/kernel_generic.cpp": nil,
		"cutlass_ext/src/cpu/avx2.cpp":           nil,
		"cutlass_ext/src/cpu_avx2/kernel.cpp":    nil,
	} {
		var got []string
		for _, arg := range toolsAt("/x").compileArgs(unit{source: source}, "o", "d", nil) {
			if strings.HasPrefix(arg, "-m") {
				got = append(got, arg)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

func TestDefines(t *testing.T) {
	info := buildInfo{cutlass: "4.3.0", cutlassCommit: "abc", cuda: "13", commit: `a"b\c`}
	want := []string{`-DSPARSEK_VERSION="` + version.Sparsek + `"`, `-DSPARSEK_CUTLASS_VERSION="4.3.0 (abc)"`,
		`-DSPARSEK_CUDA_VERSION="13"`, `-DSPARSEK_COMMIT="a\"b\\c"`}
	if diff := cmp.Diff(want, info.defines(buildInfoSource)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := info.defines("cutlass_ext/src/abi/api.cpp"); got != nil {
		t.Errorf("another file gets %q", got)
	}
}

func TestLinkArgs(t *testing.T) {
	args := toolsAt("/x").linkArgs([]string{"a.o", "b.o"}, "out.so", "map", false)
	position := func(s string) int {
		i := slices.Index(args, s)
		if i < 0 {
			t.Errorf("no %s in %q", s, args)
		}
		return i
	}
	// A static library serves only what stands before it.
	if !(position("a.o") < position("b.o") && position("b.o") < position("-lcudart_static") &&
		position("-lcudart_static") < position("-ldl")) {
		t.Errorf("wrong order: %q", args)
	}
	for _, want := range []string{"-static-libstdc++", "-static-libgcc", "-Wl,--version-script=map", "-Wl,--no-undefined",
		"-Wl,-soname,libsparsek.so.1", "-Wl,--wrap=cudaLaunchKernelExC"} {
		position(want)
	}
}

func TestCompilerEnv(t *testing.T) {
	got := compilerEnv([]string{"PATH=/bin", "CPATH=/evil", "NVCC_APPEND_FLAGS=-g", "LC_ALL=de_DE", "CPATHS=kept"}, "")
	if want := []string{"PATH=/bin", "CPATHS=kept", "LC_ALL=C"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = compilerEnv([]string{"TMPDIR=/tmp"}, "/mine")
	if want := []string{"TMPDIR=/tmp", "TMPDIR=/mine", "LC_ALL=C"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The name that programs are linked with changes when the ABI does.
func TestSONAMEHasTheVersionOfTheABI(t *testing.T) {
	header, err := os.ReadFile("../../cutlass_ext/include/sparsek.h")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^#define SPARSEK_ABI_VERSION (\d+)$`).FindSubmatch(header)
	if found == nil || SONAME != filepath.Base(Library)+"."+string(found[1]) {
		t.Errorf("SONAME is %s, and the header says %q", SONAME, found)
	}
}

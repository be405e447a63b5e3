// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/build/version"
)

// tools are the programs and folders that commands use. Commands run in root, so that sources
// are named the same wherever the checkout lies.
type tools struct {
	root    string // of the checkout, absolute
	cxx     string
	nvcc    string
	cuda    string // root of the CUDA tree
	cutlass string // CUTLASS's include folder
}

// compileArgs is the command that compiles u into object and names what it
// read in depfile. defines go to g++ alone.
func (t tools) compileArgs(u unit, object, depfile string, defines []string) []string {
	var args []string
	if u.device {
		args = append(args, t.nvcc, "-ccbin", t.cxx, "-c",
			"-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "--expt-relaxed-constexpr", "-DNDEBUG", "-O3",
			// Machine code takes a sixth of the space. It is unpacked when a program first uses a kernel.
			"--compress-mode=size",
			// These make the object depend only on the sources. The last gives the name that is hashed into
			// whatever lies in an anonymous namespace, ours or libcu++'s; nvcc would take the absolute path.
			"--frandom-seed="+u.source, "--objdir-as-tempdir", "-Xcudafe", "--orig_src_path_name="+u.source,
			"-Xcompiler", strings.Join(hostCode(), ","), "-Xptxas", "-v")
		for _, option := range quoted(t.prefixMaps()) {
			args = append(args, "-Xcompiler="+option)
		}
	} else {
		args = append(args, t.cxx, "-c", "-std=c++17", "-DNDEBUG", "-O3", "-Wall", "-Wextra", "-Werror")
		args = slices.Concat(args, hostCode(), t.prefixMaps(), isaFlags(u.source), defines)
		if u.sanitized {
			args = append(args, sanitizedCode()...)
		}
	}
	args = append(args, t.searchPaths()...)
	return append(args, "-MD", "-MF", depfile, "-o", object, u.source)
}

// searchPaths are where headers are looked for.
func (t tools) searchPaths() []string {
	var args []string
	for _, dir := range []string{includeDir, sourceDir, ".", genDir} {
		args = append(args, "-I"+dir)
	}
	for _, dir := range []string{t.cutlass, filepath.Join(t.cuda, "include"), filepath.Join(t.cuda, "include", "cccl")} {
		args = append(args, "-isystem", dir)
	}
	return args
}

// clangArgs are the options with which Clang's tools read u, a source of nvcc's, whose
// own options they do not know.
func (t tools) clangArgs(u unit, object string) []string {
	args := []string{"clang++", "-x", "cuda", "--cuda-path=" + t.cuda, "--cuda-gpu-arch=sm_90a", "-Wno-unknown-cuda-version",
		"-std=c++17", "-DNDEBUG"}
	args = append(args, t.searchPaths()...)
	return append(args, "-c", "-o", object, u.source)
}

// hostCode are g++'s options for the library's code, by itself and under nvcc.
func hostCode() []string {
	return []string{"-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"}
}

// prefixMapOption passes the maps to nvcc, each as a separate argument, so that
// a compiler cache can distinguish them.
const prefixMapOption = "-Xcompiler='-ffile-prefix-map="

// prefixMaps keep this machine's folders out of __FILE__.
func (t tools) prefixMaps() []string {
	return []string{
		"-ffile-prefix-map=" + t.root + "=.",
		"-ffile-prefix-map=" + t.cutlass + "=cutlass",
		"-ffile-prefix-map=" + t.cuda + "=cuda",
	}
}

// quoted puts each argument in quotes for the shell through which nvcc runs the
// host compiler: folders may have blanks in their names.
func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return out
}

// sanitizers are those of a sanitized library.
const sanitizers = "-fsanitize=address,undefined"

// sanitizedCode comes after all other options and overrides them: asserts are
// on, and a finding of a sanitizer ends the program, with file and line.
func sanitizedCode() []string {
	return []string{sanitizers, "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-O1", "-g1", "-UNDEBUG"}
}

// isaFlags lets a file whose name ends in an instruction set's use that.
func isaFlags(source string) []string {
	switch name := strings.TrimSuffix(source, ".cpp"); {
	case strings.HasSuffix(name, "_avx2"):
		return []string{"-mavx2", "-mfma", "-mf16c"}
	case strings.HasSuffix(name, "_avx512"):
		return []string{"-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mf16c"}
	}
	return nil
}

// linkArgs is the command that links objects into library. exports is the
// version script. C++'s and CUDA's run-time libraries go in, so that the
// library needs libc and libm only; a sanitized one needs the sanitizers' too
// and keeps its line information.
func (t tools) linkArgs(objects []string, library, exports string, sanitized bool) []string {
	args := []string{t.cxx, "-shared", "-o", library, "-static-libstdc++", "-static-libgcc",
		"-Wl,-soname," + SONAME, "-Wl,--version-script=" + exports, "-Wl,--exclude-libs,ALL",
		"-Wl,--build-id=sha1", "-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,-z,relro,-z,now,-z,noexecstack",
		"-Wl,--wrap=cudaLaunchKernelExC"} // cuda/launch_kernel.cpp
	if sanitized {
		args = append(args, sanitizers)
	} else {
		args = append(args, "-Wl,--strip-debug")
	}
	args = append(args, objects...)
	return append(args, "-L"+filepath.Join(t.cuda, "lib"), "-lcudart_static", "-ldl", "-lrt", "-lpthread")
}

// logical writes a command such that it is the same wherever the checkout and
// the toolchain lie.
func (t tools) logical(args []string) []string {
	names := strings.NewReplacer(t.cuda, "{cuda}", t.cutlass, "{cutlass}", t.root, "{root}")
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = names.Replace(arg)
	}
	return out
}

// Only buildInfoSource is compiled with the versions, so that a new commit
// recompiles no other file.
const buildInfoSource = "cutlass_ext/src/abi/build_info.cpp"

// buildInfo is the library's description of itself.
type buildInfo struct {
	cutlass, cutlassCommit, cuda, commit string
}

// defines are the macros for the source file.
func (b buildInfo) defines(source string) []string {
	if source != buildInfoSource {
		return nil
	}
	return []string{
		define("SPARSEK_VERSION", version.Sparsek),
		define("SPARSEK_CUTLASS_VERSION", fmt.Sprintf("%s (%s)", b.cutlass, b.cutlassCommit)),
		define("SPARSEK_CUDA_VERSION", b.cuda),
		define("SPARSEK_COMMIT", b.commit),
	}
}

// define gives a macro the value of a C string.
func define(name, value string) string {
	return "-D" + name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// compilerEnv is environ without variables that change the behaviour of
// compilers, and with messages in English. temp, if not empty, is the folder
// of the compilers' temporary files.
func compilerEnv(environ []string, temp string) []string {
	unwanted := []string{"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH",
		"DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "SOURCE_DATE_EPOCH", "LD_RUN_PATH",
		"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "LC_ALL"}
	env := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(unwanted, name)
	})
	if temp != "" {
		env = append(env, "TMPDIR="+temp) // the last one holds
	}
	return append(env, "LC_ALL=C")
}

// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

func TestNotFoundListsWhatWasTried(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing.so")
	_, err := Open(missing, folder)
	var notFound *NotFoundError
	if !errors.Is(err, ErrLibraryNotFound) || !errors.As(err, &notFound) {
		t.Fatalf("error is %v", err)
	}
	if want := []string{missing, filepath.Join(folder, LibraryName)}; !slices.Equal(notFound.Tried, want) {
		t.Errorf("tried %v, want %v", notFound.Tried, want)
	}
	for _, part := range append(notFound.Tried, LibraryEnv) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message does not speak of %s: %v", part, err)
		}
	}
}

func TestEnvironmentComesFirstAndAlone(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.so")
	t.Setenv(LibraryEnv, missing)
	_, err := Open()
	var notFound *NotFoundError
	if !errors.As(err, &notFound) || !slices.Equal(notFound.Tried, []string{missing}) {
		t.Errorf("error is %v", err)
	}
}

func TestAFileThatIsNoLibraryEndsTheSearch(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, LibraryName)
	if err := os.WriteFile(path, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(folder, "/nonexistent")
	if err == nil || errors.Is(err, ErrLibraryNotFound) || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v", err)
	}
}

func TestBuildFolderIsThatOfAModule(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "module", "cmd")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := BuildFolders(inner); got != nil {
		t.Errorf("outside of a module %v would be tried", got)
	}
	if err := os.WriteFile(filepath.Join(root, "module", "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(inner, "build/lib", LibraryName), filepath.Join(root, "module/build/lib", LibraryName)}
	if got := BuildFolders(inner); !slices.Equal(got, want) {
		t.Errorf("tries %v, want %v", got, want)
	}
}

func TestSearchListBeginsBesideTheExecutable(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if executable, err = filepath.EvalSymlinks(executable); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(executable)
	list := SearchList()
	if list[0] != filepath.Join(folder, "../lib", LibraryName) || list[1] != filepath.Join(folder, LibraryName) {
		t.Errorf("list is %v", list)
	}
}

func TestLibraryDescribesItself(t *testing.T) {
	lib := library(t)
	if !filepath.IsAbs(lib.Path()) {
		t.Errorf("path is %q", lib.Path())
	}
	info := must(lib.BuildInfo())(t)
	if info.Version == "" || info.CUTLASS == "" || info.Compiler == "" {
		t.Errorf("build info is %+v", info)
	}
	cpu := 0
	var baselines []string
	for _, kernel := range must(lib.Kernels())(t) {
		if kernel.Name == "" || kernel.Why == "" {
			t.Errorf("kernel is %+v", kernel)
		}
		if kernel.Backend == CPU {
			cpu++
		}
		if kernel.Baseline {
			baselines = append(baselines, kernel.Name)
		}
	}
	if cpu == 0 {
		t.Error("no kernel for the CPU")
	}
	for _, name := range []string{"wmma_bf16_128x128x32", "wmma_bf16_512x128x112", "tma_sandbox"} {
		if !slices.Contains(baselines, name) {
			t.Errorf("%s is none of the baselines %q", name, baselines)
		}
	}
}

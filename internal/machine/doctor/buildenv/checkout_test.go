// SPDX-License-Identifier: Apache-2.0

package buildenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/machine/doctor"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
)

// healthy is a checkout that lacks nothing.
func healthy() *Facts {
	return &Facts{
		Platform: "linux/amd64",
		Lock:     &lock.Lock{CUTLASS: lock.CUTLASS{Version: "4.3.0", Commit: "1de3a576ccff8a32"}, CUDA: lock.CUDA{Version: "13.0.88"}},
		Go:       Go{Version: "1.26.8", Wanted: "1.26.8", Cgo: true},
		Compiler: Compiler{Name: "g++", GNU: 12, Version: "12.2.0", Newest: 15},
		Index:    Index{Asked: true, From: "index"},
		Disks:    []Disk{{Name: checkoutDisk, Path: "/c", Free: 2, Need: 1}, {Name: cacheDisk, Path: "/k", Free: 2, Need: 1}},
	}
}

func TestHealthyCheckout(t *testing.T) {
	r := healthy().Judge()
	if !r.Works(doctor.Build) {
		t.Error("a build cannot work")
	}
	for _, f := range r {
		if f.State != doctor.OK || f.Fix != "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestWhatIsWrong(t *testing.T) {
	nvvm := []lock.Package{{Name: "nvidia-nvvm", Version: "13.0.88"}}
	for _, test := range []struct {
		what  string
		spoil func(*Facts)
		name  string
		state doctor.State
		says  string // in the detail or the fix
		works bool   // a build
	}{
		{"another platform", func(f *Facts) { f.Platform = "darwin/arm64" }, "platform", doctor.Missing, "x86-64", false},
		{"an old Go", func(f *Facts) { f.Go.Version = "1.24.1" }, "Go", doctor.TooOld, "GOTOOLCHAIN", false},
		{"a newer Go", func(f *Facts) { f.Go.Version = "1.27rc1" }, "Go", doctor.OK, "1.27", true},
		{"no Go", func(f *Facts) { f.Go.Err = errors.New("x") }, "Go", doctor.Missing, "install Go 1.26.8", false},
		{"no cgo", func(f *Facts) { f.Go.Cgo = false }, "Go", doctor.Off, "CGO_ENABLED", false},
		{"no g++", func(f *Facts) { f.Compiler.Err = errors.New("x") }, "g++", doctor.Missing, "install g++", false},
		{"a new g++", func(f *Facts) { f.Compiler.GNU = 16 }, "g++", doctor.TooNew, "CXX=g++-15", false},
		{"an old g++", func(f *Facts) { f.Compiler.GNU = 8 }, "g++", doctor.TooOld, "9 to 15", false},
		{"clang", func(f *Facts) { f.Compiler.Clang, f.Compiler.GNU = 19, 4 }, "g++", doctor.Unknown, "clang 19", true},
		{"not fetched", func(f *Facts) { f.Tree, f.Uncached = toolchain.ErrMissing, nvvm }, "nvcc", doctor.Missing, "fetch", true},
		{"not fetched, no index", func(f *Facts) {
			f.Tree, f.Uncached, f.Index.Err = toolchain.ErrMissing, nvvm, errors.New("no route")
		}, "package index", doctor.Missing, "PIP_INDEX_URL", false},
		{"not fetched, offline", func(f *Facts) { f.Tree, f.Uncached, f.Index = toolchain.ErrMissing, nvvm, Index{} },
			"package index", doctor.Off, "nvidia-nvvm 13.0.88", false},
		{"not unpacked, all in the cache, offline", func(f *Facts) { f.Tree, f.Index = toolchain.ErrMissing, Index{} },
			"package index", doctor.Off, "nothing is to be fetched", true},
		{"no index, nothing to fetch", func(f *Facts) { f.Index.Err = errors.New("no route") }, "package index", doctor.Missing, "nothing is to be fetched", true},
		{"another CUTLASS", func(f *Facts) { f.Tree = fmt.Errorf("x: %w", cutlass.ErrDigest) }, "CUTLASS", doctor.Damaged, "fetch", true},
		{"an nvcc that does not run", func(f *Facts) { f.Tree = errors.New("nvcc does not run") }, "nvcc", doctor.Damaged, "SPARSEK_CACHE", false},
		{"a full disk", func(f *Facts) { f.Disks[1].Free = 0 }, cacheDisk, doctor.TooLittle, "cachePrune", false},
		{"a read-only checkout", func(f *Facts) { f.Disks[0].Err = errors.New("x") }, checkoutDisk, doctor.Off, "right to write", false},
	} {
		f := healthy()
		test.spoil(f)
		r := f.Judge()
		var found doctor.Finding
		for _, one := range r {
			if one.Name == test.name {
				found = one
			}
		}
		if found.State != test.state || !strings.Contains(found.Detail+found.Fix, test.says) {
			t.Errorf("%s: %+v, want %s and %q", test.what, found, test.state, test.says)
		}
		if r.Works(doctor.Build) != test.works {
			t.Errorf("%s: a build works: %t", test.what, r.Works(doctor.Build))
		}
	}
}

func TestReading(t *testing.T) {
	if n, ok := newestTaken("#if defined(__GNUC__)\n\n#if __GNUC__ > 15\n\n#error -- unsupported\n#endif /* __GNUC__ > 15 */\n"); !ok || n != 15 {
		t.Errorf("host_config.h: %d, %t", n, ok)
	}
	if _, ok := newestTaken("nothing"); ok {
		t.Error("a limit of nothing")
	}
	const macros = "#define __GNUC__ 12\n#define __GNUC_MINOR__ 2\n#define __x 1 2\n"
	if got := macro(macros, "__GNUC__"); got != 12 {
		t.Errorf("__GNUC__ is %d", got)
	}
	if got := macro(macros, "__clang_major__"); got != 0 {
		t.Errorf("__clang_major__ is %d", got)
	}
}

// What a build finds out before it begins names all that is in its way, and
// nothing else.
func TestPreflight(t *testing.T) {
	if err := healthy().stops(); err != nil {
		t.Errorf("a healthy machine: %v", err)
	}
	f := healthy()
	f.Go.Cgo = false
	f.Compiler.GNU, f.Compiler.Clang = 4, 19 // works perhaps
	f.Disks[1].Free = 0
	err := f.stops()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Go: off", "install gcc", "disk of the cache: too little", "cachePrune"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "g++:") || strings.Contains(err.Error(), "disk of the checkout") {
		t.Errorf("it names a file that is no obstacle: %v", err)
	}
}

func TestPreflightHere(t *testing.T) {
	t.Setenv(fetch.CacheVariable, t.TempDir())
	t.Setenv("PATH", t.TempDir())
	err := Preflight(t.Context(), "../../../..", "")
	if err == nil || !strings.Contains(err.Error(), "install g++") || !strings.Contains(err.Error(), "Go: missing") {
		t.Errorf("without a compiler: %v", err)
	}
}

// A cache folder that is not there yet lies on the disk of the one above it.
func TestDiskOfAFolderToBe(t *testing.T) {
	d := Disk{Path: filepath.Join(t.TempDir(), "not", "yet")}
	if d.measure(); d.Err != nil || d.Free <= 0 {
		t.Errorf("%+v", d)
	}
	if os.Getuid() == 0 {
		return // root may write anywhere
	}
	d = Disk{Path: "/"}
	if d.measure(); d.Err == nil {
		t.Errorf("%+v", d)
	}
}

// This checkout, on the machine that the tests run on.
func TestLookHere(t *testing.T) {
	f, err := Look(t.Context(), "../../../..", "", true)
	if err != nil {
		t.Fatal(err)
	}
	if f.Go.Err != nil || f.Go.Wanted == "" || f.Go.Version == "" {
		t.Errorf("Go: %+v", f.Go)
	}
	if f.Compiler.Err == nil && (f.Compiler.GNU == 0 || f.Compiler.Newest < 15) {
		t.Errorf("compiler: %+v", f.Compiler)
	}
	if len(f.Disks) == 0 || f.Disks[0].Err != nil || !filepath.IsAbs(f.Disks[0].Path) {
		t.Errorf("disks: %+v", f.Disks)
	}
	if _, err := Look(t.Context(), t.TempDir(), "", true); err == nil {
		t.Error("a folder without a lock: no error")
	}
}

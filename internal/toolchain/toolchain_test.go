// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

func TestPrepare(t *testing.T) {
	w := newWorld(t)
	tc := w.prepare(t)
	want := map[string]string{
		"cuda/bin/nvcc": "-rwxr-xr-x", "cuda/bin/nvcc.profile": "-rw-r--r--", "cuda/nvvm/bin/cicc": "-rwxr-xr-x",
		"cuda/lib/libcudart_static.a": "-rw-r--r--", "cuda/include/cuda_runtime.h": "-rw-r--r--", "cuda/lib64": "Lrwxrwxrwx",
		"licenses/nvidia-cuda-nvcc/License.txt": "-rw-r--r--", "manifest.json": "-rw-r--r--",
		"cutlass/include/cutlass/version.h": "-rw-r--r--", "cutlass/include/cute/x.hpp": "-rw-r--r--",
		"cutlass/tools/util/include/cutlass/util/y.h": "-rw-r--r--",
	}
	if diff := cmp.Diff(want, listing(t, filepath.Dir(tc.CUDA))); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{tc.NVCC, filepath.Join(tc.CUDA, "lib64", "libcudart_static.a"),
		filepath.Join(tc.CUTLASSInclude, "cute", "x.hpp"), filepath.Join(tc.CUTLASSTools, "cutlass", "util", "y.h")} {
		if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if tc.CUDAVersion != "13.0.88" || tc.CUTLASSVersion != "4.3.0" || tc.CUTLASSCommit != w.lock.CUTLASS.Commit || tc.Digest != Digest(w.lock) {
		t.Errorf("got %+v", tc)
	}
	// The second time needs no network, and not the archives either.
	hits := w.hits.Load()
	if err := os.RemoveAll(filepath.Join(w.cache, "sha256")); err != nil {
		t.Fatal(err)
	}
	opts := w.options()
	opts.Offline = true
	again, err := Prepare(context.Background(), opts)
	if err != nil || again.NVCC != tc.NVCC || again.Digest != tc.Digest || w.hits.Load() != hits {
		t.Errorf("%v, %d requests", err, w.hits.Load()-hits)
	}
}

func TestDamagedTreeIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	tc := w.prepare(t)
	good := listing(t, filepath.Dir(tc.CUDA))
	for name, spoil := range map[string]func() error{
		"a tool's bytes":    func() error { return os.WriteFile(tc.NVCC, []byte(nvccScript+"#"), 0o755) },
		"same size":         func() error { return os.WriteFile(filepath.Join(tc.CUDA, "nvvm/bin/cicc"), []byte("CICC"), 0o755) },
		"run bit":           func() error { return os.Chmod(tc.NVCC, 0o644) },
		"missing":           func() error { return os.Remove(filepath.Join(tc.CUDA, "include/cuda_runtime.h")) },
		"one more":          func() error { return os.WriteFile(filepath.Join(tc.CUDA, "include/new.h"), nil, 0o644) },
		"link":              func() error { return os.Remove(filepath.Join(tc.CUDA, "lib64")) },
		"no manifest":       func() error { return os.Remove(filepath.Join(tc.CUDA, "..", manifestFile)) },
		"empty manifest":    func() error { return os.WriteFile(filepath.Join(tc.CUDA, "..", manifestFile), []byte("{}"), 0o644) },
		"header":            func() error { return os.WriteFile(filepath.Join(tc.CUTLASSInclude, "cute/x.hpp"), []byte("X"), 0o644) },
		"one more header":   func() error { return os.WriteFile(filepath.Join(tc.CUTLASSInclude, "cute/y.hpp"), nil, 0o644) },
		"no headers at all": func() error { return os.RemoveAll(filepath.Dir(tc.CUTLASSInclude)) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		opts := w.options()
		opts.Offline = true // all archives but the CUTLASS one at a URL are there
		if _, err := Prepare(context.Background(), opts); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(good, listing(t, filepath.Dir(tc.CUDA))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for file, want := range map[string]string{"bin/nvcc": nvccScript, "nvvm/bin/cicc": "cicc"} {
			if got, err := os.ReadFile(filepath.Join(tc.CUDA, file)); err != nil || string(got) != want {
				t.Errorf("%s: %s is wrong (%v)", name, file, err)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(w.cache, "tree", "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left in tree: %q", left)
	}
}

func TestCarriersOfCUTLASS(t *testing.T) {
	other := maps.Clone(headers)
	other["include/cute/x.hpp"] = "another release under the same version"
	archive := "cutlass-" + strings.Repeat("c", 40)
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  string // "" for success
	}{
		"first carrier": {func(w *world) {
			w.files[archive+".tar.gz"] = tarGz(t, archive+"/", headers)
			delete(w.files, "carrier-1.0.tar.gz")
		}, ""},
		"first carrier has another tree": {func(w *world) { w.files[archive+".tar.gz"] = tarGz(t, archive+"/", other) }, ""},
		"first carrier is hostile": {func(w *world) {
			w.files[archive+".tar.gz"] = tarGz(t, archive+"/", map[string]string{"../x": ""})
		}, ""},
		"first carrier is no archive": {func(w *world) { w.files[archive+".tar.gz"] = []byte("<html>") }, ""},
		"none has it": {func(w *world) {
			w.files[archive+".tar.gz"] = tarGz(t, archive+"/", other)
			delete(w.files, "carrier-1.0.tar.gz")
		}, "claims 4.3.0, but include"},
		"the prefix is wrong": {func(w *world) {
			w.lock.CUTLASS.Carriers = w.lock.CUTLASS.Carriers[1:]
			w.lock.CUTLASS.Carriers[0].Prefix = "x/"
		}, "include"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.spoil(w)
			_, err := Prepare(context.Background(), w.options())
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
				if left, _ := filepath.Glob(filepath.Join(w.cache, "tree", "*")); len(left) != 0 {
					t.Errorf("a failure left %q", left)
				}
				if left, _ := filepath.Glob(filepath.Join(w.cache, "tree", ".*")); len(left) != 0 {
					t.Errorf("a failure left %q", left)
				}
			}
		})
	}
}

func TestToolsMustBeThoseOfTheLock(t *testing.T) {
	for script, want := range map[string]string{
		strings.ReplaceAll(nvccScript, "V13.0.88", "V13.0.99"): "says it is 13.0.99 and the lock says 13.0.88",
		"#!/bin/sh\necho hello\n":                              "names no version",
		"#!/bin/sh\nexit 3\n":                                  "does not run",
	} {
		w := newWorld(t)
		w.lock.CUDA.Wheels = nil
		w.wheel(t, "nvidia-cuda-nvcc", map[string]string{"nvidia/cu13/bin/nvcc": script, "nvidia/cu13/nvvm/bin/cicc": "", "nvidia_cuda_nvcc-1.dist-info/licenses/L": ""})
		// Each time: a tree that was unpacked once must not pass the second time.
		for range 2 {
			if _, err := Prepare(context.Background(), w.options()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		}
	}
}

// One download fails and cancels the others: only that one is reported, and a
// carrier that is passed over is no failure.
func TestProgressOfAFailure(t *testing.T) {
	w := newWorld(t)
	w.pace = 20 * time.Millisecond
	w.wheel(t, "nvidia-gone", map[string]string{"nvidia/cu13/bin/gone": "x"})
	delete(w.files, w.lock.CUDA.Wheels[2].File)
	var said bytes.Buffer
	opts := w.options()
	opts.Progress = term.New(&said)
	_, err := Prepare(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "nvidia-gone") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(said.String(), "cancel") || strings.Contains(said.String(), "failed") {
		t.Errorf("progress said\n%s", said.String())
	}
}

func TestProgressOfASkippedCarrier(t *testing.T) {
	w := newWorld(t)
	var said bytes.Buffer
	w.lock.CUTLASS.Carriers = append([]lock.Carrier{{URL: "https://no-such-host.invalid/{commit}.tar.gz", MaxBytes: 1 << 20,
		Prefix: "cutlass-{commit}/"}}, w.lock.CUTLASS.Carriers...)
	opts := w.options()
	opts.Progress = term.New(&said)
	if _, err := Prepare(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), ": not from https://no-such-host.invalid/") || strings.Contains(said.String(), "failed") {
		t.Errorf("progress said\n%s", said.String())
	}
}

func TestOfflineNamesWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	opts := w.options()
	opts.Offline = true
	_, err := Prepare(context.Background(), opts)
	var off *fetch.OfflineError
	if !errors.As(err, &off) || off.Path == "" || w.hits.Load() != 0 {
		t.Fatalf("got %v, %d requests", err, w.hits.Load())
	}
	// All of it, so that one need not copy file by file and try again.
	for _, p := range w.lock.CUDA.Wheels {
		if !strings.Contains(err.Error(), p.File) || !strings.Contains(err.Error(), p.SHA256) {
			t.Errorf("%s is not named in %v", p.File, err)
		}
	}
	if !strings.Contains(err.Error(), "offline, and 3 files") {
		t.Errorf("want two wheels and one carrier of CUTLASS, got %v", err)
	}
}

func TestWheelsThatClashAreRefused(t *testing.T) {
	w := newWorld(t)
	w.wheel(t, "nvidia-clash", map[string]string{"nvidia/cu13/bin/nvcc": "#!/bin/sh\n"})
	if _, err := Prepare(context.Background(), w.options()); err == nil || !strings.Contains(err.Error(), "bin/nvcc") {
		t.Errorf("got %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := Prepare(context.Background(), w.options()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// One page and one file for each package, and the carrier that is not there.
	if n := w.hits.Load(); n != 7 {
		t.Errorf("%d requests", n)
	}
}

func TestLeftoversOfAKilledProcessAreCleared(t *testing.T) {
	w := newWorld(t)
	stage := filepath.Join(w.cache, "tree", ".new-"+Digest(w.lock), "cuda", "bin")
	if err := errors.Join(os.MkdirAll(stage, 0o755), os.WriteFile(filepath.Join(stage, "nvcc"), []byte("half"), 0o755)); err != nil {
		t.Fatal(err)
	}
	tc := w.prepare(t)
	if got, err := os.ReadFile(tc.NVCC); err != nil || string(got) != nvccScript {
		t.Errorf("%q %v", got, err)
	}
}

func TestCancelled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Prepare(ctx, w.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDigestIsOfTheBytesAlone(t *testing.T) {
	w := newWorld(t)
	first := Digest(w.lock)
	w.lock.CUTLASS.Carriers = w.lock.CUTLASS.Carriers[1:]
	w.lock.CUDA.Wheels[0], w.lock.CUDA.Wheels[1] = w.lock.CUDA.Wheels[1], w.lock.CUDA.Wheels[0]
	if Digest(w.lock) != first {
		t.Error("carriers or order change the digest")
	}
	for name, change := range map[string]func(l *lock.Lock){
		"include": func(l *lock.Lock) { l.CUTLASS.Include = l.CUTLASS.Tools },
		"wheel":   func(l *lock.Lock) { l.CUDA.Wheels[0].SHA256 = l.CUDA.Wheels[1].SHA256 },
		"commit":  func(l *lock.Lock) { l.CUTLASS.Commit = "" },
	} {
		l := *w.lock
		l.CUDA.Wheels = append([]lock.Package(nil), l.CUDA.Wheels...)
		change(&l)
		if Digest(&l) == first {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestBadLocksAreRefused(t *testing.T) {
	if _, err := Prepare(context.Background(), Options{LockPath: filepath.Join(t.TempDir(), "none.json")}); err == nil {
		t.Error("no lock: no error")
	}
	if _, err := Prepare(context.Background(), Options{Lock: &lock.Lock{}}); err == nil {
		t.Error("an empty lock: no error")
	}
}

func TestFiles(t *testing.T) {
	w := newWorld(t)
	files, err := Files(context.Background(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(w.lock.Packages()) {
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		if data, err := os.ReadFile(f.Path); err != nil || string(data) != string(w.files[f.File]) {
			t.Errorf("%s: %v", f.File, err)
		}
	}
	opts := w.options()
	opts.Offline = true
	tc, err := Prepare(context.Background(), opts)
	if err != nil {
		t.Fatalf("they do not make a toolchain: %v", err)
	}
	moved := tc.Moved("/elsewhere")
	if moved.NVCC != "/elsewhere/cuda/bin/nvcc" || moved.Digest != tc.Digest || moved.Lock != w.lock {
		t.Errorf("%+v", moved)
	}
	if got, err := os.ReadFile(filepath.Join(tc.Licenses(), "nvidia-cuda-nvcc", "License.txt")); string(got) != "terms" {
		t.Errorf("licence: %q, %v", got, err)
	}
	opts.CacheDir = t.TempDir()
	var off *fetch.OfflineError
	if _, err := Files(context.Background(), opts); !errors.As(err, &off) {
		t.Errorf("offline: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"

	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
)

// world is a checkout in small: a lock whose packages lie in a cache, and a Go
// module that a proxy serves and that has a program called mage in it.
type world struct {
	t     *testing.T
	root  string
	cache string
	lock  lock.Lock
}

const (
	depPath    = "example.org/dep"
	depVersion = "v1.2.0"
	mitText    = "Permission is hereby granted, free of charge, to any\nperson obtaining a copy"
	nvcc       = "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	for _, program := range []string{"go", "g++", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: no %s", program)
		}
	}
	w := &world{t: t, root: t.TempDir(), cache: t.TempDir()}
	w.makeLock()
	w.makeModule()
	w.write(w.root, "LICENSE", "licence\n")
	w.write(w.root, "cmd/main/main.go", "package main\n\nimport _ \"example.org/dep\"\n\nfunc main() {}\n")
	return w
}

func (w *world) write(dir, name, text string) {
	w.t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// keep puts a package's file into the cache.
func (w *world) keep(name, file string, data []byte) lock.Package {
	w.t.Helper()
	sum := sha256.Sum256(data)
	p := lock.Package{Name: name, Version: "1.0", File: file, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	w.write(w.cache, "sha256/"+p.SHA256, string(data))
	return p
}

func (w *world) makeLock() {
	w.t.Helper()
	headers := map[string]string{
		"include/cutlass/version.h":           "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 3\n#define CUTLASS_PATCH 0\n",
		"tools/util/include/cutlass/util/y.h": "y",
	}
	var archive bytes.Buffer
	gz := gzip.NewWriter(&archive)
	tw := tar.NewWriter(gz)
	tree := w.t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		text := headers[name]
		w.write(tree, name, text)
		w.check(tw.WriteHeader(&tar.Header{Name: "c-1.0/" + name, Size: int64(len(text)), Mode: 0o644, Typeflag: tar.TypeReg}))
		_, err := io.WriteString(tw, text)
		w.check(err)
	}
	w.check(errors.Join(tw.Close(), gz.Close()))
	found, err := cutlass.Inspect(tree)
	w.check(err)
	carrier := w.keep("carrier", "carrier-1.0.tar.gz", archive.Bytes())

	var wheel bytes.Buffer
	zw := zip.NewWriter(&wheel)
	for _, file := range [][2]string{
		{"nvidia/cu13/bin/nvcc", nvcc}, {"nvidia/cu13/nvvm/bin/cicc", ""}, {"x-1.0.dist-info/licenses/License.txt", "terms"},
		{"x-1.0.dist-info/METADATA", "Name: x\nLicense-Expression: LicenseRef-X\n\ntext"},
	} {
		f, err := zw.Create(file[0])
		w.check(err)
		_, err = io.WriteString(f, file[1])
		w.check(err)
	}
	w.check(zw.Close())
	w.lock = lock.Lock{
		CUTLASS: lock.CUTLASS{Version: "4.3.0", Constraint: "~4.3", Commit: strings.Repeat("c", 40), Include: found.Include,
			Tools: found.Tools, Carriers: []lock.Carrier{{Package: &carrier, Prefix: "c-1.0/"}}},
		CUDA: lock.CUDA{Version: "13.0.88", Wheels: []lock.Package{w.keep("nvidia-cuda-nvcc", "x-1.0-py3-none-any.whl", wheel.Bytes())}},
	}
	w.check(w.lock.Save(filepath.Join(w.root, lock.FileName)))
}

// makeModule makes the module, a proxy that serves it, and what of the
// checkout refers to it.
func (w *world) makeModule() {
	w.t.Helper()
	dep, proxy := w.t.TempDir(), w.t.TempDir()
	mod := "module " + depPath + "\n\ngo 1.24\n"
	w.write(dep, "go.mod", mod)
	w.write(dep, "LICENSE", mitText)
	w.write(dep, "dep.go", "package dep\n")
	w.write(dep, "mage/main.go", "package main\n\nimport \"os\"\n\nfunc main() { println(\"mage\", os.Getenv(\"SPARSEK_CACHE\"), len(os.Args), os.Args[1], os.Args[len(os.Args)-1]) }\n")
	var archive bytes.Buffer
	w.check(modzip.CreateFromDir(&archive, gomodule.Version{Path: depPath, Version: depVersion}, dep))
	base := depPath + "/@v/" + depVersion
	w.write(proxy, base+".mod", mod)
	w.write(proxy, base+".info", `{"Version":"`+depVersion+`"}`)
	w.write(proxy, base+".zip", archive.String())
	sum, err := dirhash.HashZip(filepath.Join(proxy, base+".zip"), dirhash.Hash1)
	w.check(err)
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(mod)), nil
	})
	w.check(err)
	w.write(w.root, "go.mod", fmt.Sprintf("module example.org/main\n\ngo 1.24\n\ntool %s/mage\n\nrequire %s %s\n", depPath, depPath, depVersion))
	w.write(w.root, "go.sum", fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", depPath, depVersion, sum, depPath, depVersion, modSum))
	w.t.Setenv("GOPROXY", "file://"+proxy)
	w.t.Setenv("GOSUMDB", "off")
	w.t.Setenv("GOMODCACHE", filepath.Join(w.t.TempDir(), "empty"))
}

// bundle writes the bundle and returns its path.
func (w *world) bundle() (string, Result) {
	w.t.Helper()
	options := toolchain.Options{LockPath: filepath.Join(w.root, lock.FileName), CacheDir: w.cache, Offline: true}
	tools, err := toolchain.Prepare(w.t.Context(), options)
	w.check(err)
	files, err := toolchain.Files(w.t.Context(), options)
	w.check(err)
	out := filepath.Join(w.t.TempDir(), "out", "sparsek.tar")
	result, err := Write(w.t.Context(), Options{Root: w.root, Version: "1.2.3", Toolchain: tools, Files: files,
		Program: "./cmd/main", Out: out})
	w.check(err)
	return out, result
}

// unpack unpacks a bundle as people do, and gives it the objects that Go has
// compiled already.
func (w *world) unpack(archive string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "-xf", archive).CombinedOutput(); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	dir = filepath.Join(dir, "sparsek-1.2.3")
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	w.check(err)
	w.check(os.Mkdir(filepath.Join(dir, "work"), 0o777))
	w.check(os.Symlink(strings.TrimSpace(string(out)), filepath.Join(dir, "work", "go-build")))
	return dir
}

// run runs build.sh on a machine whose own settings lead nowhere.
func (w *world) run(dir string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(dir, "build.sh"), args...)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOPRIVATE=*", "GOFLAGS=-mod=vendor", "SPARSEK_CACHE=/nowhere")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

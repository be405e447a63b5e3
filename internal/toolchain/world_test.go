// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/sys/testnet"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
)

// world is an index and a web server with a small toolchain in them: wheels
// whose nvcc is a script, and a CUTLASS tree of two headers.
type world struct {
	*httptest.Server
	files map[string][]byte
	hits  atomic.Int64
	lock  *lock.Lock
	cache string
	pace  time.Duration // between the pieces in which a file is sent; set before the first request
}

const nvccScript = "#!/bin/sh\necho 'nvcc: NVIDIA (R) Cuda compiler driver'\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n"

// headers is a CUTLASS tree, and more that lies beside it in an archive.
var headers = map[string]string{
	"include/cutlass/version.h":           "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 3\n#define CUTLASS_PATCH 0\n",
	"include/cute/x.hpp":                  "x",
	"tools/util/include/cutlass/util/y.h": "y",
	"tools/library/z.h":                   "not needed",
}

// newWorld starts a server and points pip's settings at it alone.
func newWorld(t *testing.T) *world {
	t.Helper()
	testnet.NeedLoopback(t)
	w := &world{files: map[string][]byte{}, cache: filepath.Join(t.TempDir(), "cache")}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.hits.Add(1)
		if strings.HasPrefix(r.URL.Path, "/simple/") {
			for name := range w.files {
				fmt.Fprintf(rw, "<a href=\"/f/%s\">%s</a>\n", name, name)
			}
			return
		}
		data, ok := w.files[filepath.Base(r.URL.Path)]
		if !ok {
			http.NotFound(rw, r)
			return
		}
		w.send(rw, data)
	}))
	w.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log the clients that were killed
	w.StartTLS()
	t.Cleanup(w.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "UV_INDEX", "UV_FIND_LINKS",
		"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"} {
		t.Setenv(v, "")
	}
	t.Setenv("PATH", t.TempDir()) // no Python: what pip's own files say is of no interest here
	t.Setenv("PIP_CERT", ca)
	t.Setenv("PIP_INDEX_URL", w.URL+"/simple")
	w.lock = &lock.Lock{
		CUTLASS: lock.CUTLASS{Version: "4.3.0", Constraint: "~4.3", Commit: strings.Repeat("c", 40), Carriers: []lock.Carrier{
			{URL: w.URL + "/cutlass-{commit}.tar.gz", MaxBytes: 1 << 20, Prefix: "cutlass-{commit}/"},
			{Package: w.add("carrier", "1.0", "carrier-1.0.tar.gz", tarGz(t, "carrier-1.0/cutlass/", headers)), Prefix: "carrier-1.0/cutlass/"},
		}},
		CUDA: lock.CUDA{Version: "13.0.88"},
	}
	tree := inspect(t, headers)
	w.lock.CUTLASS.Include, w.lock.CUTLASS.Tools = tree.Include, tree.Tools
	w.wheel(t, "nvidia-cuda-nvcc", map[string]string{
		"nvidia/cu13/bin/nvcc": nvccScript, "nvidia/cu13/bin/nvcc.profile": "TOP = x\n", "nvidia/cu13/nvvm/bin/cicc": "cicc",
		"nvidia/cu13/.metadata/x": "not needed", "nvidia_cuda_nvcc-1.dist-info/licenses/License.txt": "terms",
		"nvidia_cuda_nvcc-1.dist-info/RECORD": "not needed",
	})
	w.wheel(t, "nvidia-cuda-runtime", map[string]string{"nvidia/cu13/lib/libcudart_static.a": "lib", "nvidia/cu13/include/cuda_runtime.h": "h"})
	return w
}

// send sends a file in some pieces.
func (w *world) send(rw http.ResponseWriter, data []byte) {
	rw.Header().Set("Content-Length", strconv.Itoa(len(data)))
	for piece := range slices.Chunk(data, max(1, len(data)/8)) {
		if _, err := rw.Write(piece); err != nil {
			return
		}
		_ = http.NewResponseController(rw).Flush()
		time.Sleep(w.pace)
	}
}

// add puts a file of a package on the server.
func (w *world) add(name, version, file string, data []byte) *lock.Package {
	w.files[file] = data
	sum := sha256.Sum256(data)
	return &lock.Package{Name: name, Version: version, File: file, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

// wheel puts a wheel of the CUDA compiler on the server and into the lock.
func (w *world) wheel(t *testing.T, name string, files map[string]string) {
	t.Helper()
	w.lock.CUDA.Wheels = append(w.lock.CUDA.Wheels, w.pack(t, name, files))
}

// tool puts the wheel of a tool on the server and into the lock.
func (w *world) tool(t *testing.T, name string, files map[string]string) {
	t.Helper()
	w.lock.Tools = append(w.lock.Tools, w.pack(t, name, files))
}

// pack puts a wheel on the server.
func (w *world) pack(t *testing.T, name string, files map[string]string) lock.Package {
	t.Helper()
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		f, err := zw.Create(file) // states no mode, so run bits are lost
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[file])); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	file := strings.ReplaceAll(name, "-", "_") + "-1.0-py3-none-manylinux_x86_64.whl"
	return *w.add(name, "1.0", file, buf.Bytes())
}

func (w *world) options() Options {
	return Options{Lock: w.lock, CacheDir: w.cache}
}

func (w *world) prepare(t *testing.T) *Toolchain {
	t.Helper()
	tc, err := Prepare(context.Background(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	return tc
}

func tarGz(t *testing.T, prefix string, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Name: prefix + name, Size: int64(len(files[name])), Mode: 0o644, Typeflag: tar.TypeReg}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// inspect identifies the CUTLASS tree in files.
func inspect(t *testing.T, files map[string]string) cutlass.Tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := cutlass.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// listing maps what lies below dir to its mode.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, p)
		got[rel] = info.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

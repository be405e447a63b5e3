// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/sys/testnet"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
)

// server is a package index and a web server over TLS in one. files maps the
// names of wheels to their bytes; what is in sums is listed with that hash.
type server struct {
	*httptest.Server
	files  map[string]string
	sums   map[string]string
	yanked string
}

func hexSum(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func newServer(t *testing.T) *server {
	testnet.NeedLoopback(t)
	s := &server{files: map[string]string{}, sums: map[string]string{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch dir, name := filepath.Split(r.URL.Path); {
		case dir == "/f/":
			data, ok := s.files[name]
			if !ok {
				http.NotFound(w, r)
				return
			}
			w.Write([]byte(data))
		case strings.HasPrefix(r.URL.Path, "/simple/"):
			s.list(w, r, filepath.Base(r.URL.Path))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) list(w http.ResponseWriter, r *http.Request, project string) {
	var files []map[string]any
	for name, data := range s.files {
		if !strings.HasPrefix(pyindex.Normalize(name), project+"-") {
			continue
		}
		sum := s.sums[name]
		if sum == "" {
			sum = hexSum(data)
		}
		files = append(files, map[string]any{
			"filename": name, "url": "/f/" + name, "size": len(data), "yanked": name == s.yanked,
			"hashes": map[string]string{"sha256": sum},
		})
	}
	if files == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"files": files})
}

// reach returns a resolver and an empty cache that reach only s.
func (s *server) reach(t *testing.T) (*pyindex.Resolver, *fetch.Cache) {
	t.Helper()
	client := s.Client()
	client.Transport = status{client.Transport}
	index := pyindex.New(&pyindex.Config{Indexes: []string{s.URL + "/simple"}}, client)
	cache, err := fetch.Open(fetch.Options{Dir: t.TempDir(), Client: index.Client, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	return index, cache
}

// status makes errors of refusals, as the client of package fetch does.
type status struct{ http.RoundTripper }

func (s status) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err == nil && resp.StatusCode >= 400 {
		resp.Body.Close()
		return nil, &fetch.StatusError{Code: resp.StatusCode}
	}
	return resp, err
}

// locked is a lock of what the server has.
func (s *server) locked() *Lock {
	l := sample()
	l.CUTLASS.Carriers[0].URL = s.URL + "/f/cutlass-{commit}.tar.gz"
	for i := range l.CUDA.Wheels {
		s.pin(&l.CUDA.Wheels[i], "wheel of "+l.CUDA.Wheels[i].Name)
	}
	s.pin(l.CUTLASS.Carriers[1].Package, "carrier")
	s.pin(&l.Tools[0], "wheel of a tool")
	return l
}

func (s *server) pin(p *Package, data string) {
	s.files[p.File] = data
	p.Bytes, p.SHA256 = int64(len(data)), hexSum(data)
}

func states(checks []Check) map[string]State {
	m := map[string]State{}
	for _, c := range checks {
		m[c.Name] = c.State
	}
	return m
}

func TestVerify(t *testing.T) {
	s := newServer(t)
	l := s.locked()
	index, cache := s.reach(t)
	archive := s.URL + "/f/cutlass-" + l.CUTLASS.Commit + ".tar.gz"
	checks, err := Verify(context.Background(), l, index, cache)
	want := map[string]State{"nvidia-cuda-nvcc 13.0.88": OK, "nvidia-nvvm 13.0.88": OK, "clang-format 19.1.7": OK,
		"carrier 1.0": OK, archive: Missing}
	if diff := cmp.Diff(want, states(checks)); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	if left, _ := filepath.Glob(filepath.Join(cache.Dir(), "*")); len(left) != 0 {
		t.Errorf("something was downloaded: %q", left)
	}
}

func TestVerifyFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *server, l *Lock)
		want  string
	}{
		"gone":       {func(s *server, l *Lock) { delete(s.files, l.CUDA.Wheels[1].File) }, "nvidia-nvvm 13.0.88: missing"},
		"other sum":  {func(s *server, l *Lock) { s.sums[l.CUDA.Wheels[1].File] = sumA }, "nvidia-nvvm 13.0.88: differs"},
		"other size": {func(s *server, l *Lock) { l.CUDA.Wheels[0].Bytes++ }, "nvidia-cuda-nvcc 13.0.88: differs"},
		"a tool":     {func(s *server, l *Lock) { delete(s.files, l.Tools[0].File) }, "clang-format 19.1.7: missing"},
		"nobody":     {func(s *server, l *Lock) { s.Close() }, "nvidia-cuda-nvcc 13.0.88: unreachable"},
		"no carrier": {func(s *server, l *Lock) { delete(s.files, "carrier-1.0.tar.gz") }, "carrier 1.0: missing"},
	} {
		s := newServer(t)
		l := s.locked()
		index, cache := s.reach(t)
		c.spoil(s, l)
		if _, err := Verify(context.Background(), l, index, cache); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestVerifyChecksTheCache(t *testing.T) {
	s := newServer(t)
	l := s.locked()
	index, cache := s.reach(t)
	put := func(p Package, data string) {
		path := cache.Path(p.SHA256)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put(l.CUDA.Wheels[0], s.files[l.CUDA.Wheels[0].File])
	put(l.CUDA.Wheels[1], "not the bytes")
	checks, err := Verify(context.Background(), l, index, cache)
	if err == nil || !strings.Contains(err.Error(), "nvidia-nvvm 13.0.88 is damaged in the cache") {
		t.Errorf("got %v", err)
	}
	if checks[0].Cached != "whole" || checks[1].Cached != "damaged" || checks[2].Cached != "" {
		t.Errorf("got %+v", checks)
	}
}

func TestUpdate(t *testing.T) {
	s := newServer(t)
	l := s.locked()
	index, cache := s.reach(t)
	before := l.clone()
	for _, f := range []string{
		"nvidia_cuda_nvcc-13.0.9-py3-none-manylinux_x86_64.whl", "nvidia_cuda_nvcc-13.0.100-py3-none-manylinux_x86_64.whl",
		"nvidia_cuda_nvcc-13.0.101-py3-none-win_amd64.whl", "nvidia_cuda_nvcc-13.0.102-py3-none-manylinux_aarch64.whl",
		"nvidia_cuda_nvcc-13.0.103rc1-py3-none-manylinux_x86_64.whl", "nvidia_cuda_nvcc-13.0.104-py3-none-manylinux_x86_64.whl",
		"nvidia_cuda_nvcc-13.0.105-py3-none-musllinux_1_2_x86_64.whl", "nvidia_cuda_nvcc-13.1.5-py3-none-manylinux_x86_64.whl",
		"clang_format-19.1.8-py2.py3-none-manylinux_x86_64.whl",
	} {
		s.files[f] = "new " + f
	}
	s.yanked = "nvidia_cuda_nvcc-13.0.104-py3-none-manylinux_x86_64.whl"
	next, err := Update(context.Background(), l, nil, index, cache)
	if err != nil {
		t.Fatal(err)
	}
	w := next.CUDA.Wheels[0]
	if data := s.files[w.File]; w.Version != "13.0.100" || w.SHA256 != hexSum(data) || w.Bytes != int64(len(data)) || next.CUDA.Version != "13.0.100" {
		t.Errorf("got %+v", next.CUDA)
	}
	if next.Tools[0].Version != "19.1.8" {
		t.Errorf("got %+v", next.Tools)
	}
	if diff := cmp.Diff(before, l); diff != "" {
		t.Errorf("the old lock was changed: %s", diff)
	}
	if next.CUDA.Wheels[1] != l.CUDA.Wheels[1] {
		t.Error("a wheel without a newer one was changed")
	}
	next, err = Update(context.Background(), l, Wants{compiler: "13.1.5"}, index, cache)
	if err != nil || next.CUDA.Version != "13.1.5" {
		t.Errorf("asked for 13.1.5: got %v, %v", next, err)
	}
	for name, wants := range map[string]Wants{"no such version": {compiler: "99.0"}, "no such package": {"x": "1"}} {
		if _, err := Update(context.Background(), l, wants, index, cache); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s.sums["nvidia_cuda_nvcc-13.1.5-py3-none-manylinux_x86_64.whl"] = sumA
	if _, err := Update(context.Background(), l, Wants{compiler: "13.1.5"}, index, cache); !errors.Is(err, fetch.ErrChecksum) {
		t.Errorf("a hash that the index lists otherwise: got %v", err)
	}
}

// cutlassArchive is a .tar.gz of a CUTLASS tree of a version.
func cutlassArchive(t *testing.T, prefix, version string) string {
	t.Helper()
	part := strings.Split(version, ".")
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for name, text := range map[string]string{
		"include/cutlass/version.h":           "#define CUTLASS_MAJOR " + part[0] + "\n#define CUTLASS_MINOR " + part[1] + "\n#define CUTLASS_PATCH " + part[2] + "\n",
		"tools/util/include/cutlass/util/x.h": "x", "README.md": "r",
	} {
		if err := tw.WriteHeader(&tar.Header{Name: prefix + name, Size: int64(len(text)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestUpdateOfCUTLASS(t *testing.T) {
	s := newServer(t)
	l := s.locked()
	index, cache := s.reach(t)
	commit := strings.Repeat("d", 40)
	s.files["cutlass-"+commit+".tar.gz"] = cutlassArchive(t, "cutlass-"+commit+"/", "4.3.7")
	next, err := Update(context.Background(), l, Wants{CUTLASSName: commit}, index, cache)
	if err != nil {
		t.Fatal(err)
	}
	c := next.CUTLASS
	if c.Version != "4.3.7" || c.Commit != commit || c.Include == l.CUTLASS.Include || len(c.Carriers) != 1 {
		t.Errorf("got %+v", c)
	}
	// The version that the tree claims must keep to the constraint.
	s.files["cutlass-"+commit+".tar.gz"] = cutlassArchive(t, "cutlass-"+commit+"/", "4.4.0")
	if _, err := Update(context.Background(), l, Wants{CUTLASSName: commit}, index, cache); err == nil || !strings.Contains(err.Error(), "~4.3") {
		t.Errorf("another minor version: got %v", err)
	}
	for _, bad := range []string{"main", strings.Repeat("e", 40)} {
		if _, err := Update(context.Background(), l, Wants{CUTLASSName: bad}, index, cache); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

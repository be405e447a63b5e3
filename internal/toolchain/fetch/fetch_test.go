// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/sys/testnet"
)

// body is what the carriers of the tests should give.
var body = bytes.Repeat([]byte("0123456789abcdef"), 4096)

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pinned is the file with the bytes of body, from the given addresses.
func pinned(addresses ...string) File {
	f := File{Name: "thing", Base: "thing.whl", Bytes: int64(len(body)), SHA256: hexSum(body)}
	for _, a := range addresses {
		f.Sources = append(f.Sources, URL(a))
	}
	return f
}

// quick are options whose waits suit a test.
func quick(t testing.TB) Options {
	return Options{Dir: filepath.Join(t.TempDir(), "cache"), Attempts: 3, Backoff: time.Millisecond, Stall: 150 * time.Millisecond}
}

func open(t testing.TB, opts Options) *Cache {
	t.Helper()
	c, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// carrier is a server that counts its requests.
type carrier struct {
	*httptest.Server
	hits atomic.Int64
}

func serve(t testing.TB, h func(w http.ResponseWriter, r *http.Request, hit int64)) *carrier {
	t.Helper()
	testnet.NeedLoopback(t)
	c := &carrier{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h(w, r, c.hits.Add(1))
	}))
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func good(t testing.TB) *carrier {
	return serve(t, func(w http.ResponseWriter, _ *http.Request, _ int64) { w.Write(body) })
}

// checkOnly fails unless the cache holds the file of body, if it is wanted,
// and nothing else that could be taken for a file or a download under way.
func checkOnly(t *testing.T, c *Cache, wanted bool) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(c.Dir(), "sha256", "*"))
	parts, _ := filepath.Glob(filepath.Join(c.Dir(), "tmp", "*"))
	if len(parts) != 0 {
		t.Errorf("left behind: %q", parts)
	}
	switch {
	case !wanted && len(files) != 0:
		t.Errorf("in the cache after a failure: %q", files)
	case wanted && (len(files) != 1 || files[0] != c.Path(hexSum(body))):
		t.Errorf("in the cache: %q", files)
	case wanted:
		if got, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(got, body) {
			t.Errorf("wrong bytes in the cache (%v)", err)
		}
	}
}

func TestNoRequestWhenCached(t *testing.T) {
	srv := good(t)
	opts := quick(t)
	for range 3 {
		path, err := open(t, opts).Get(context.Background(), pinned(srv.URL))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o444 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	if n := srv.hits.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// spoil replaces the cached file of body.
func spoil(t *testing.T, c *Cache, data []byte) {
	t.Helper()
	path := c.Path(hexSum(body))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedEntryIsFetchedAgain(t *testing.T) {
	bad := bytes.Clone(body)
	bad[len(bad)-1] ^= 0x80
	for name, data := range map[string][]byte{"bit": bad, "short": body[:10], "empty": nil, "long": append(bytes.Clone(body), 0)} {
		c := open(t, quick(t))
		spoil(t, c, data)
		if err := c.Check(context.Background(), int64(len(body)), hexSum(body)); !damaged(err) {
			t.Errorf("%s: check says %v", name, err)
		}
		if _, err := c.Get(context.Background(), pinned(good(t).URL)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkOnly(t, c, true)
	}
}

func TestOffline(t *testing.T) {
	opts := quick(t)
	opts.Offline = true
	c := open(t, opts)
	srv := good(t)
	_, err := c.Get(context.Background(), pinned(srv.URL))
	var off *OfflineError
	if !errors.As(err, &off) || off.Bad {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"thing.whl", hexSum(body), c.Path(hexSum(body))} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	spoil(t, c, body[:7])
	if _, err = c.Get(context.Background(), pinned(srv.URL)); !errors.As(err, &off) || !off.Bad {
		t.Errorf("damaged: got %v", err)
	}
	if err = c.Download(context.Background(), "tree", 10, nil, nil); !errors.As(err, &off) {
		t.Errorf("not pinned: got %v", err)
	}
	if n := srv.hits.Load(); n != 0 {
		t.Errorf("%d requests while offline", n)
	}
	spoil(t, c, body)
	if _, err = c.Get(context.Background(), pinned()); err != nil {
		t.Error(err)
	}
}

func TestStaleDownloadIsNotContinued(t *testing.T) {
	// What a killed process left: a part that is longer than the file.
	srv := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) {
		if r.Header.Get("Range") != "" {
			t.Error("a range was asked for")
		}
		w.Header().Set("Accept-Ranges", "bytes")
		w.Write(body)
	})
	c := open(t, quick(t))
	f := pinned(srv.URL)
	part := filepath.Join(c.Dir(), "tmp", f.key()+".part")
	if err := errors.Join(os.MkdirAll(filepath.Dir(part), 0o755), os.WriteFile(part, bytes.Repeat(body, 2), 0o444)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(context.Background(), f); err != nil {
		t.Fatal(err)
	}
	checkOnly(t, c, true)
}

func TestCopyOfALocalFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space, % and #")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "f+1.whl")
	if err := os.WriteFile(file, body, 0o644); err != nil {
		t.Fatal(err)
	}
	c := open(t, quick(t))
	if _, err := c.Get(context.Background(), pinned(FileURL(file))); err != nil {
		t.Fatal(err)
	}
	checkOnly(t, c, true)
	if info, err := os.Lstat(c.Path(hexSum(body))); err != nil || !info.Mode().IsRegular() {
		t.Errorf("a link to the source: %v %v", info.Mode(), err)
	}
}

func TestBadPinsAreRefused(t *testing.T) {
	srv := good(t)
	for _, f := range []File{
		{Name: "x", Bytes: 1, SHA256: ""},
		{Name: "x", Bytes: 1, SHA256: "abc"},
		{Name: "x", Bytes: 1, SHA256: strings.ToUpper(hexSum(body))},
		{Name: "x", Bytes: 1, SHA256: strings.Repeat("g", 64)},
		{Name: "x", Bytes: 0, SHA256: hexSum(body)},
	} {
		f.Sources = []Source{URL(srv.URL)}
		if _, err := open(t, quick(t)).Get(context.Background(), f); err == nil || !strings.Contains(err.Error(), "lock") {
			t.Errorf("%+v: got %v", f, err)
		}
	}
	if srv.hits.Load() != 0 {
		t.Error("fetched without a pin")
	}
}

func TestDownloadOfWhatIsNotPinned(t *testing.T) {
	c := open(t, quick(t))
	srv := good(t)
	var seen string
	err := c.Download(context.Background(), "tree", int64(len(body)), []Source{URL(srv.URL)}, func(path string) error {
		got, err := os.ReadFile(path)
		if !bytes.Equal(got, body) {
			t.Error("wrong bytes")
		}
		seen = path
		return err
	})
	if err != nil || seen == "" {
		t.Fatal(err)
	}
	checkOnly(t, c, false)
	err = c.Download(context.Background(), "tree", int64(len(body))-1, []Source{URL(srv.URL)}, nil)
	if !errors.Is(err, ErrTooBig) {
		t.Errorf("got %v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	srv := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) {
		w.Write(body[:10])
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	opts := quick(t)
	opts.Stall = time.Minute
	c := open(t, opts)
	if _, err := c.Get(ctx, pinned(srv.URL, srv.URL)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if n := srv.hits.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	checkOnly(t, c, false)
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	opts := quick(t)
	opts.Dir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(opts.Dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, opts).Get(context.Background(), pinned(good(t).URL))
	if err == nil || !strings.Contains(err.Error(), opts.Dir) {
		t.Fatalf("got %v", err)
	}
}

func TestReadOnlyCacheServesWhatItHas(t *testing.T) {
	c := open(t, quick(t))
	spoil(t, c, body)
	sub := filepath.Dir(c.Path(hexSum(body)))
	for _, dir := range []string{sub, c.Dir()} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
	}
	if _, err := c.Get(context.Background(), pinned()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir(), "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a lock was taken to read")
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv(CacheVariable, "some/where")
	c := open(t, Options{})
	if !filepath.IsAbs(c.Dir()) || !strings.HasSuffix(c.Dir(), "some/where") {
		t.Errorf("got %s", c.Dir())
	}
	t.Setenv(CacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", "/x/y")
	if c := open(t, Options{}); c.Dir() != "/x/y/sparsek" {
		t.Errorf("got %s", c.Dir())
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := Open(Options{}); err == nil || !strings.Contains(err.Error(), CacheVariable) {
		t.Errorf("got %v", err)
	}
}

func TestProgressTellsWhatHappened(t *testing.T) {
	var log bytes.Buffer
	opts := quick(t)
	opts.Progress = term.New(&log)
	bad := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) { http.NotFound(w, r) })
	if _, err := open(t, opts).Get(context.Background(), pinned(bad.URL, good(t).URL)); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"404", "trying the next carrier", "done thing: 65.5 kB"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("%q is not in the log:\n%s", part, log.String())
		}
	}
}

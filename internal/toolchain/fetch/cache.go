// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// CacheVariable names the environment variable that places the cache.
const CacheVariable = "SPARSEK_CACHE"

// Options configure a Cache. The zero value is right for users.
type Options struct {
	// Dir is the cache folder; "" stands for SPARSEK_CACHE, else the folder
	// sparsek in the user's cache folder. It need not exist.
	Dir string
	// Offline forbids the network: what is not in the cache is an error, an
	// *OfflineError.
	Offline bool
	// Progress shows the downloads; nil shows nothing.
	Progress *term.Reporter
	// Client makes the HTTP client, once, when it is first needed; nil stands
	// for NewClient without further certificates.
	Client func(context.Context) (*http.Client, error)

	// Attempts is how often a carrier with temporary failures is tried; 0
	// stands for 4.
	Attempts int
	// Backoff is the wait before the second attempt, doubled for each after
	// it; 0 stands for half a second.
	Backoff time.Duration
	// Stall is how long a carrier may send less than 1 KiB a second; 0 stands
	// for 30 seconds.
	Stall time.Duration
}

// Cache is a folder of files addressed by their content. Any number of Caches,
// in any number of processes, may share one folder.
type Cache struct {
	dir    string
	opts   Options
	client func(context.Context) (*http.Client, error)
}

// Open returns the cache that opts describe. It touches neither disk nor
// network.
func Open(opts Options) (*Cache, error) {
	dir, err := cacheDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	if opts.Attempts == 0 {
		opts.Attempts = 4
	}
	if opts.Backoff == 0 {
		opts.Backoff = 500 * time.Millisecond
	}
	if opts.Stall == 0 {
		opts.Stall = 30 * time.Second
	}
	c := &Cache{dir: dir, opts: opts}
	c.client = sharedClient(opts.Client)
	return c, nil
}

// sharedClient makes the client on first use. A failure is not kept, so that
// a cancelled first use does not break the second.
func sharedClient(make func(context.Context) (*http.Client, error)) func(context.Context) (*http.Client, error) {
	if make == nil {
		make = func(context.Context) (*http.Client, error) { return NewClient() }
	}
	var mu sync.Mutex
	var client *http.Client
	return func(ctx context.Context) (*http.Client, error) {
		mu.Lock()
		defer mu.Unlock()
		if client != nil {
			return client, nil
		}
		c, err := make(ctx)
		if err == nil {
			client = c
		}
		return c, err
	}
}

func cacheDir(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv(CacheVariable)
	}
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no folder for the cache: %w; set %s to a folder", err, CacheVariable)
		}
		dir = filepath.Join(base, "sparsek")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cache folder %s: %w", dir, err)
	}
	return abs, nil
}

// Dir is the cache folder, an absolute path.
func (c *Cache) Dir() string { return c.dir }

// Offline reports whether the network is forbidden.
func (c *Cache) Offline() bool { return c.opts.Offline }

// Client is the HTTP client that the cache's downloads go through.
func (c *Cache) Client(ctx context.Context) (*http.Client, error) { return c.client(ctx) }

// Path is where a file of that sha256, 64 hex digits, is kept, or would be.
func (c *Cache) Path(sha string) string { return filepath.Join(c.dir, "sha256", sha) }

// Check reports the state of the file of that size and sha256 in the cache:
// nil if it exists and is whole, fs.ErrNotExist if it does not exist,
// ErrChecksum, ErrTruncated or ErrTooBig if it is damaged.
func (c *Cache) Check(ctx context.Context, bytes int64, sha string) error {
	return checkFile(ctx, c.Path(sha), bytes, sha)
}

func checkFile(ctx context.Context, path string, bytes int64, sha string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case info.Size() < bytes:
		return fmt.Errorf("%w: %d of %d", ErrTruncated, info.Size(), bytes)
	case info.Size() > bytes:
		return fmt.Errorf("%w: %d, not %d", ErrTooBig, info.Size(), bytes)
	}
	h := sha256.New()
	if _, err := io.Copy(h, &contextReader{ctx, f}); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sha {
		return fmt.Errorf("%w: got %s, pinned is %s", ErrChecksum, got, sha)
	}
	return nil
}

// damaged reports whether an error of Check means a file that must be replaced.
func damaged(err error) bool {
	return errors.Is(err, ErrChecksum) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrTooBig)
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// makeDir makes a folder of the cache.
func (c *Cache) makeDir(name string) (string, error) {
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", c.diskError(err)
	}
	return dir, nil
}

// diskError marks an error of the file system as one of the cache's disk; all
// others pass as they are.
func (c *Cache) diskError(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	if errors.As(err, &path) || errors.As(err, &link) {
		return &DiskError{Dir: c.dir, Err: err}
	}
	return err
}

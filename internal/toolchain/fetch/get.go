// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// File is a file to fetch.
type File struct {
	Name    string   // its name in messages
	Base    string   // its file name on the carrier
	Bytes   int64    // size, exact
	SHA256  string   // 64 lower-case hex digits
	Sources []Source // tried in order
}

// Source is a carrier: a place that may have a file.
type Source struct {
	// Label names the carrier in messages; it has no secrets.
	Label string
	// URLs returns the addresses of the file, best first; http, https and file
	// URLs. It is called only when it is the carrier's turn.
	URLs func(ctx context.Context) ([]string, error)
}

// URL is a Source of one fixed address.
func URL(address string) Source {
	return Source{
		Label: Redact(address),
		URLs:  func(context.Context) ([]string, error) { return []string{address}, nil },
	}
}

// Get returns the path of the file f in the cache, and fetches it if it is
// missing or damaged. This call hashes the bytes at the path.
func (c *Cache) Get(ctx context.Context, f File) (string, error) {
	if err := f.validate(); err != nil {
		return "", err
	}
	path := c.Path(f.SHA256)
	state := c.Check(ctx, f.Bytes, f.SHA256)
	switch {
	case state == nil:
		return path, nil
	case !damaged(state) && !errors.Is(state, fs.ErrNotExist):
		return "", fmt.Errorf("%s: %w", f.Name, c.diskError(state))
	case c.opts.Offline:
		return "", &OfflineError{Name: f.Name, Base: f.Base, Bytes: f.Bytes, SHA256: f.SHA256, Path: path, Bad: damaged(state)}
	}
	unlock, err := c.Lock(ctx, f.SHA256, f.Name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	defer unlock()
	// The previous holder of the lock may have fetched it.
	if state = c.Check(ctx, f.Bytes, f.SHA256); state == nil {
		return path, nil
	}
	if damaged(state) {
		c.opts.Progress.Printf("%s: damaged in the cache (%v), fetching it again", f.Name, state)
	}
	if err := c.fetch(ctx, f, func(part string) error { return c.diskError(keep(part, path)) }); err != nil {
		return "", err
	}
	return path, nil
}

// Download fetches a file of at most maxBytes whose hash is not pinned, hands
// its path to use and removes it when use returns. The caller must check the
// file by other means.
func (c *Cache) Download(ctx context.Context, name string, maxBytes int64, sources []Source, use func(path string) error) error {
	if c.opts.Offline {
		return &OfflineError{Name: name}
	}
	f := File{Name: name, Bytes: maxBytes, Sources: sources}
	unlock, err := c.Lock(ctx, f.key(), name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unlock()
	return c.fetch(ctx, f, use)
}

// pinned reports whether size and hash are known.
func (f *File) pinned() bool { return f.SHA256 != "" }

// key names the file's lock and its part file, so that one that a killed
// process left behind is found and replaced.
func (f *File) key() string {
	if f.pinned() {
		return f.SHA256
	}
	sum := sha256.Sum256([]byte(f.Name))
	return "name-" + hex.EncodeToString(sum[:])
}

func (f *File) validate() error {
	// go-getter does not check an empty sum, so the pin is checked here.
	if raw, err := hex.DecodeString(f.SHA256); err != nil || len(raw) != sha256.Size || f.SHA256 != strings.ToLower(f.SHA256) {
		return fmt.Errorf("%s: sha256 %q is not 64 lower-case hex digits; fix the lock", f.Name, f.SHA256)
	}
	if f.Bytes <= 0 {
		return fmt.Errorf("%s: a size of %d bytes; fix the lock", f.Name, f.Bytes)
	}
	return nil
}

// fetch downloads f into a part file, hands that to use and removes it. The
// caller holds f's lock.
func (c *Cache) fetch(ctx context.Context, f File, use func(part string) error) error {
	dir, err := c.makeDir("tmp")
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	client, err := c.client(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	part := filepath.Join(dir, f.key()+".part")
	defer os.Remove(part)
	if err := c.download(ctx, client, f, part); err != nil {
		return err
	}
	if err := use(part); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// keep gives a checked part file its final name, whole or not at all, even if
// the power fails.
func keep(part, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := flush(part); err != nil {
		return err
	}
	if err := os.Chmod(part, 0o444); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return flush(filepath.Dir(path))
}

func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// FileURL is the address of a file or folder on this machine, by its absolute
// path.
func FileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

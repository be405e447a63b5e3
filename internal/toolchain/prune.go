// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
)

// Unused is something in the cache that the lock does not need.
type Unused struct {
	Kind  string // "tree", "download" or "leftover" (of a run that was killed)
	Path  string // from the cache folder
	Bytes int64
	// InUse: a build or a fetch uses it now.
	InUse bool

	locks []string // to be held while it is removed
}

// Pruning lists what can be removed from a cache.
type Pruning struct {
	Dir    string
	Unused []Unused

	cache *fetch.Cache
}

// FindUnused lists what the cache holds and the lock does not need, trees
// first. It changes nothing. Foreign files are not listed.
func FindUnused(ctx context.Context, opts Options) (*Pruning, error) {
	b, err := newBuilder(opts)
	if err != nil {
		return nil, err
	}
	p := &Pruning{Dir: b.cache.Dir(), cache: b.cache}
	used := map[string]bool{Digest(b.lock): true}
	for _, w := range b.lock.Packages() {
		used[w.SHA256] = true
	}
	for _, folder := range []struct {
		name     string
		classify func(string) (kind string, locks []string)
	}{{"tree", classifyTree}, {"sha256", classifyFile}, {"tmp", classifyPart}} {
		entries, err := os.ReadDir(filepath.Join(p.Dir, folder.name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking through the cache: %w", err)
		}
		for _, e := range entries {
			kind, locks := folder.classify(e.Name())
			if kind == "" || kind != "leftover" && used[e.Name()] {
				continue
			}
			u := Unused{Kind: kind, Path: filepath.Join(folder.name, e.Name()), locks: locks}
			if u.Bytes, err = size(ctx, filepath.Join(p.Dir, u.Path)); err != nil {
				return nil, fmt.Errorf("looking through the cache: %w", err)
			}
			unlock, free, err := p.lock(u)
			if err != nil {
				return nil, err
			}
			unlock()
			u.InUse = !free
			p.Unused = append(p.Unused, u)
		}
	}
	return p, nil
}

// Print lists what was found, a line each, and the sum.
func (p *Pruning) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n", p.Dir)
	var bytes int64
	for _, u := range p.Unused {
		note := ""
		if u.InUse {
			note = "  in use: stays"
		} else {
			bytes += u.Bytes
		}
		fmt.Fprintf(w, "  %-8s  %10s  %s%s\n", u.Kind, term.FormatBytes(u.Bytes), u.Path, note)
	}
	fmt.Fprintf(w, "%s that the lock has no use for\n", term.FormatBytes(bytes))
}

// Remove removes what was found and is not in use now. It returns the bytes
// that it freed, also where it fails.
func (p *Pruning) Remove(ctx context.Context) (freed int64, err error) {
	for _, u := range p.Unused {
		if err := ctx.Err(); err != nil {
			return freed, err
		}
		gone, err := p.remove(u)
		if err != nil {
			return freed, fmt.Errorf("pruning the cache: %w", err)
		}
		if gone {
			freed += u.Bytes
		}
	}
	return freed, nil
}

func (p *Pruning) remove(u Unused) (gone bool, err error) {
	unlock, free, err := p.lock(u)
	if err != nil || !free {
		return false, err
	}
	defer unlock()
	path := filepath.Join(p.Dir, u.Path)
	if u.Kind == "tree" {
		// By one rename, so that no half tree has its name at any time. What is
		// left of it if this process is killed is a leftover.
		old := filepath.Join(filepath.Dir(path), oldPrefix+filepath.Base(path))
		if err := os.RemoveAll(old); err != nil {
			return false, err
		}
		if err := os.Rename(path, old); err != nil {
			return false, err
		}
		path = old
	}
	return true, os.RemoveAll(path)
}

// lock takes the locks of u, all or none; unlock may be called in either case.
func (p *Pruning) lock(u Unused) (unlock func(), free bool, err error) {
	var held []func()
	unlock = func() {
		for _, each := range held {
			each()
		}
	}
	for _, key := range u.locks {
		release, ok, err := p.cache.TryLock(key)
		if err == nil && ok {
			held = append(held, release)
			continue
		}
		unlock()
		return func() {}, false, err
	}
	return unlock, true, nil
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

func classifyTree(name string) (kind string, locks []string) {
	for _, prefix := range []string{newPrefix, oldPrefix} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			// The process that makes the tree holds the lock on both of these.
			return "leftover", []string{treeKey(rest)}
		}
	}
	if !digestPattern.MatchString(name) {
		return "", nil
	}
	return "tree", []string{treeKey(name), useKey(name)}
}

func classifyFile(name string) (kind string, locks []string) {
	if !digestPattern.MatchString(name) {
		return "", nil
	}
	return "download", []string{name}
}

func classifyPart(name string) (kind string, locks []string) {
	key, ok := strings.CutSuffix(name, ".part")
	if !ok {
		return "", nil
	}
	return "leftover", []string{key}
}

// size is what a file or folder holds. What goes away meanwhile holds nothing.
func size(ctx context.Context, path string) (bytes int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes, err
}

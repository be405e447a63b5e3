// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
	"github.com/sparsek/sparsek/internal/toolchain/unpack"
)

// The folders of a tree.
const (
	cudaDir     = "cuda"
	cutlassDir  = "cutlass"
	licensesDir = "licenses"
)

// Prefixes of a tree's digest, for folders beside the tree: one that is being
// made, and one that is being removed.
const (
	newPrefix = ".new-"
	oldPrefix = ".old-"
)

// downloads is how many files are fetched at once.
const downloads = 3

// wheelRoot is where NVIDIA's packages for CUDA 13 have their files.
const wheelRoot = "nvidia/cu13/"

// builder makes a tree. It runs under the tree's lock.
type builder struct {
	lock     *lock.Lock
	cache    *fetch.Cache
	index    *pyindex.Resolver
	progress *term.Reporter
	dir      string // the tree's folder
}

// build fetches and unpacks all parts beside dir, and then renames the result
// to dir.
func (b *builder) build(ctx context.Context) error {
	parent, name := filepath.Split(b.dir)
	stage, old := filepath.Join(parent, newPrefix+name), filepath.Join(parent, oldPrefix+name)
	// The names are the lock's, so these are what a killed process left.
	for _, left := range []string{stage, old} {
		if err := os.RemoveAll(left); err != nil {
			return b.disk(err)
		}
	}
	if err := os.MkdirAll(stage, 0o755); err != nil {
		return b.disk(err)
	}
	defer os.RemoveAll(stage)
	if err := b.fill(ctx, stage); err != nil {
		return err
	}
	if err := writeManifest(ctx, stage); err != nil {
		return b.disk(err)
	}
	if err := os.Rename(b.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b.disk(err)
	}
	// The old tree goes before the new one is there: a process that is killed before
	// then leaves no tree, and so the next one comes by and clears away the rest.
	if err := os.RemoveAll(old); err != nil {
		return b.disk(err)
	}
	return b.disk(os.Rename(stage, b.dir))
}

// fill makes the parts of the tree in stage.
func (b *builder) fill(ctx context.Context, stage string) error {
	if b.cache.Offline() {
		if err := b.missing(ctx); err != nil {
			return err
		}
	}
	wheels := make([]string, len(b.lock.CUDA.Wheels))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(downloads)
	for i, w := range b.lock.CUDA.Wheels {
		g.Go(func() (err error) {
			wheels[i], err = b.cache.Get(gctx, b.file(w))
			return err
		})
	}
	g.Go(func() error { return b.cutlass(gctx, filepath.Join(stage, cutlassDir)) })
	if err := g.Wait(); err != nil {
		return err
	}
	root, err := os.OpenRoot(stage)
	if err != nil {
		return b.disk(err)
	}
	defer root.Close()
	bar := b.progress.Bar("unpacking", int64(len(wheels)), term.Count)
	for i, w := range b.lock.CUDA.Wheels {
		if err := unpackWheel(ctx, wheels[i], w, root); err != nil {
			bar.Drop()
			return b.disk(err)
		}
		bar.Add(1)
	}
	if err := complete(root); err != nil {
		bar.Drop()
		return b.disk(err)
	}
	bar.Done()
	return nil
}

// file is the file of a package, which the index offers.
func (b *builder) file(p lock.Package) fetch.File {
	at := fetch.Source{
		Label: "package index",
		URLs: func(ctx context.Context) ([]string, error) {
			links, err := b.index.Find(ctx, pyindex.Coordinate{Name: p.Name, Version: p.Version, File: p.File})
			if err != nil {
				return nil, err
			}
			var urls []string
			for _, l := range links {
				if l.SHA256 != "" && l.SHA256 != p.SHA256 {
					return nil, fmt.Errorf("%s lists %s with sha256 %s, the lock has %s", l.From, p.File, l.SHA256, p.SHA256)
				}
				urls = append(urls, l.URL)
			}
			return urls, nil
		},
	}
	return fetch.File{Name: p.String(), Base: p.File, Bytes: p.Bytes, SHA256: p.SHA256, Sources: []fetch.Source{at}}
}

// unpackWheel puts a wheel's share of the CUDA tree and its licences in root.
func unpackWheel(ctx context.Context, archive string, w lock.Package, root *os.Root) error {
	return unpack.File(ctx, archive, w.File, root, unpack.Options{
		Select: func(name string) (string, bool) {
			if rest, ok := strings.CutPrefix(name, wheelRoot); ok && !strings.HasPrefix(rest, ".") {
				return path.Join(cudaDir, rest), true
			}
			if _, rest, ok := strings.Cut(name, ".dist-info/licenses/"); ok {
				return path.Join(licensesDir, w.Name, rest), true
			}
			return "", false
		},
	})
}

// complete adds what the wheels lack compared with NVIDIA's installer:
// nvcc.profile searches lib64, and some tools have lost their run bits.
func complete(root *os.Root) error {
	if err := root.Symlink("lib", path.Join(cudaDir, "lib64")); err != nil {
		return err
	}
	for _, dir := range []string{path.Join(cudaDir, "bin"), path.Join(cudaDir, "nvvm", "bin")} {
		entries, err := fs.ReadDir(root.FS(), dir)
		if err != nil {
			return fmt.Errorf("the CUDA packages have no folder %s: %w; fix the lock", dir, err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && path.Ext(e.Name()) != ".profile" {
				if err := root.Chmod(path.Join(dir, e.Name()), 0o755); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// disk marks an error of the file system as one of the cache's disk.
func (b *builder) disk(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	if errors.As(err, &p) || errors.As(err, &l) {
		return &fetch.DiskError{Dir: b.cache.Dir(), Err: err}
	}
	return err
}

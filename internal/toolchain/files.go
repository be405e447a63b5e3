// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// File is a file of a package, checked, in the cache.
type File struct {
	lock.Package
	Path string
}

// Files returns the files of all packages that the lock names, which it
// fetches if need be: those that a toolchain can be made of without a network.
func Files(ctx context.Context, opts Options) ([]File, error) {
	b, err := newBuilder(opts)
	if err != nil {
		return nil, err
	}
	packages := b.lock.Packages()
	files := make([]File, len(packages))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(downloads)
	for i, p := range packages {
		g.Go(func() error {
			path, err := b.cache.Get(ctx, b.file(p))
			files[i] = File{p, path}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	return files, nil
}

// Licenses is the folder with the licences of the packages, a folder for each.
func (t *Toolchain) Licenses() string { return filepath.Join(t.Dir(), licensesDir) }

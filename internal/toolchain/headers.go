// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
)

// cutlass makes the CUTLASS tree in dir, from the first carrier that has the
// pinned one. Carriers that are in the cache already come before all others.
func (b *builder) cutlass(ctx context.Context, dir string) error {
	var causes []error
	carriers := b.carriers(ctx)
	for i, c := range carriers {
		err := b.fromCarrier(ctx, c, dir)
		if err == nil {
			return nil
		}
		var disk *fetch.DiskError
		if ctx.Err() != nil || errors.As(err, &disk) {
			return err
		}
		var offline *fetch.OfflineError
		if errors.As(err, &offline) && c.Package == nil {
			continue // the carriers that the cache can hold say what is missing
		}
		causes = append(causes, err)
		if i < len(carriers)-1 {
			cause := err
			var none *fetch.CarriersError
			if errors.As(err, &none) {
				cause = errors.Join(none.Causes...) // without the advice: nothing is wrong yet
			}
			b.progress.Printf("CUTLASS %s: not from %v; trying the next carrier", b.lock.CUTLASS.Version, cause)
		}
	}
	if len(causes) == 0 {
		return &fetch.OfflineError{Name: "CUTLASS " + b.lock.CUTLASS.Version}
	}
	return fmt.Errorf("CUTLASS %s: no carrier gave the pinned tree: %w", b.lock.CUTLASS.Version, errors.Join(causes...))
}

func (b *builder) carriers(ctx context.Context) []lock.Carrier {
	var cached, others []lock.Carrier
	for _, c := range b.lock.CUTLASS.Carriers {
		if c.Package != nil && b.cache.Check(ctx, c.Package.Bytes, c.Package.SHA256) == nil {
			cached = append(cached, c)
		} else {
			others = append(others, c)
		}
	}
	return append(cached, others...)
}

// fromCarrier makes the tree from one carrier and checks it.
func (b *builder) fromCarrier(ctx context.Context, c lock.Carrier, dir string) error {
	expand := strings.NewReplacer("{commit}", b.lock.CUTLASS.Commit).Replace
	unpack := func(archive, kind string) error {
		return b.unpackHeaders(ctx, archive, kind, expand(c.Prefix), dir)
	}
	if c.Package != nil {
		archive, err := b.cache.Get(ctx, b.file(*c.Package))
		if err != nil {
			return err
		}
		return unpack(archive, c.Package.File)
	}
	url := expand(c.URL)
	name := "CUTLASS " + b.lock.CUTLASS.Version
	return b.cache.Download(ctx, name, c.MaxBytes, []fetch.Source{fetch.URL(url)}, func(archive string) error {
		return unpack(archive, path.Base(url))
	})
}

func (b *builder) unpackHeaders(ctx context.Context, archive, kind, prefix, dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return b.disk(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return b.disk(err)
	}
	defer root.Close()
	if err := cutlass.Unpack(ctx, archive, kind, prefix, root); err != nil {
		return b.disk(err)
	}
	if err := cutlass.Verify(dir, wanted(b.lock)); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// offlineErrors are files that are needed, not in the cache and, offline, not
// to be fetched.
type offlineErrors []*fetch.OfflineError

func (e offlineErrors) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "offline, and %d files are not in the cache or damaged there: run go tool mage fetch once with a network, or "+
		"copy them from another machine:", len(e))
	for _, one := range e {
		fmt.Fprintf(&s, "\n  %s (%s, sha256 %s) to %s", one.Base, term.FormatBytes(one.Bytes), one.SHA256, one.Path)
	}
	return s.String()
}

// Unwrap gives the files to errors.As.
func (e offlineErrors) Unwrap() []error {
	var all []error
	for _, one := range e {
		all = append(all, one)
	}
	return all
}

// missing names all files that the tree cannot be made without and that are
// not in the cache. Of CUTLASS's carriers one will do.
func (b *builder) missing(ctx context.Context) error {
	var missing offlineErrors
	look := func(p lock.Package) error {
		_, err := b.cache.Get(ctx, b.file(p))
		var offline *fetch.OfflineError
		if errors.As(err, &offline) {
			missing = append(missing, offline)
			return nil
		}
		return err
	}
	for _, w := range b.lock.CUDA.Wheels {
		if err := look(w); err != nil {
			return err
		}
	}
	for _, c := range b.carriers(ctx) {
		if c.Package == nil {
			continue
		}
		if err := look(*c.Package); err != nil {
			return err
		}
		break // those in the cache come first
	}
	if len(missing) == 0 {
		return nil
	}
	return missing
}

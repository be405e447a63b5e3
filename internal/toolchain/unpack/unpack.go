// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Options select the entries of an archive.
type Options struct {
	// Limits bound the whole archive; the zero value stands for DefaultLimits.
	Limits Limits
	// Select maps the clean name of an entry to its place under the
	// destination, both with forward slashes, or reports that it is skipped.
	// Nil takes everything under its own name.
	Select func(name string) (place string, wanted bool)
}

// File unpacks the archive at filename into root, by the ending of kind (a
// file name: .tar.gz, .tgz, .zip or .whl), because a file in a
// content-addressed cache has no ending. Files get mode 0755 if the archive
// marks them executable for anyone and 0644 otherwise.
func File(ctx context.Context, filename, kind string, root *os.Root, opts Options) error {
	f, err := os.Open(filename)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", kind, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("unpack %s: %w", kind, err)
	}
	switch {
	case strings.HasSuffix(kind, ".tar.gz"), strings.HasSuffix(kind, ".tgz"):
		err = TarGz(ctx, f, info.Size(), root, opts)
	case strings.HasSuffix(kind, ".zip"), strings.HasSuffix(kind, ".whl"):
		err = Zip(ctx, f, info.Size(), root, opts)
	default:
		err = errors.New("not an archive this program reads: .tar.gz, .tgz, .zip, .whl")
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", kind, err)
	}
	return nil
}

// writer puts entries under a root.
type writer struct {
	ctx    context.Context
	root   *os.Root
	choose func(string) (string, bool)
	names  *tree
	budget *budget
}

func newWriter(ctx context.Context, root *os.Root, opts Options, archive int64) *writer {
	if opts.Limits == (Limits{}) {
		opts.Limits = DefaultLimits
	}
	if opts.Select == nil {
		opts.Select = func(name string) (string, bool) { return name, true }
	}
	return &writer{ctx, root, opts.Select, newTree(), newBudget(opts.Limits, archive)}
}

// begin accounts for an entry and returns its place; "" for an entry to
// skip.
func (w *writer) begin(name string, mode fs.FileMode) (place string, err error) {
	if err := w.ctx.Err(); err != nil {
		return "", err
	}
	if err := w.budget.entry(); err != nil {
		return "", err
	}
	clean, err := cleanName(name)
	if err != nil || clean == "" {
		return "", err
	}
	place, wanted := w.choose(clean)
	if !wanted {
		return "", nil
	}
	if !mode.IsRegular() && !mode.IsDir() {
		return "", fmt.Errorf("%q is %w (%s)", clip(name), ErrType, mode.Type())
	}
	if !fs.ValidPath(place) || place == "." {
		return "", fmt.Errorf("%w %q: its place %q is not below the destination", ErrName, clip(name), place)
	}
	return place, w.names.add(place, mode.IsDir())
}

// put writes one entry to its place. Contents come from r, already counted
// against the budget; r is not read for a folder.
func (w *writer) put(place string, mode fs.FileMode, r io.Reader) error {
	if mode.IsDir() {
		return w.root.MkdirAll(place, 0o755)
	}
	if dir := path.Dir(place); dir != "." {
		if err := w.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	// O_EXCL: never writes through an existing file or link.
	f, err := w.root.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return fmt.Errorf("%q: %w", place, err)
	}
	return f.Close()
}

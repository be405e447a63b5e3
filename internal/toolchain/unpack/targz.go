// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// TarGz unpacks a gzip-compressed tar archive of size bytes into root.
func TarGz(ctx context.Context, r io.Reader, size int64, root *os.Root, opts Options) error {
	w := newWriter(ctx, root, opts, size)
	zr, err := gzip.NewReader(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return corrupt(err)
	}
	// The budget counts the tar stream itself: headers can be a bomb too.
	stream := &reader{ctx, zr, w.budget}
	tr := tar.NewReader(stream)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return corrupt(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue // a comment, such as the commit in archives made by git
		}
		mode := modeOf(h)
		place, err := w.begin(h.Name, mode)
		if err != nil {
			return err
		}
		if place == "" {
			continue
		}
		if err := w.put(place, mode, tr); err != nil {
			return corrupt(err)
		}
	}
	// The check sum of gzip comes after the last entry.
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return corrupt(err)
	}
	return nil
}

// modeOf is the mode of an entry, irregular for anything that is neither a
// plain file nor a folder. FileInfo reports hard links as files, and sparse
// files too, whose holes are not bytes of the stream.
func modeOf(h *tar.Header) fs.FileMode {
	mode := h.FileInfo().Mode()
	sparse := slices.ContainsFunc(slices.Collect(maps.Keys(h.PAXRecords)), func(key string) bool {
		return strings.HasPrefix(key, "GNU.sparse.")
	})
	if sparse || (h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir) {
		mode |= fs.ModeIrregular
	}
	return mode
}

// corrupt marks the errors of the archive readers as damage; others pass
// unchanged.
func corrupt(err error) error {
	for _, e := range []error{
		gzip.ErrHeader, gzip.ErrChecksum, tar.ErrHeader, io.ErrUnexpectedEOF, io.EOF,
	} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	if isFlate(err) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

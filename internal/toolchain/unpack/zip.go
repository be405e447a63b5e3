// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// flagEncrypted is the bit of a zip entry's flags that says it is encrypted.
const flagEncrypted = 1

// Zip unpacks a zip archive of size bytes into root. Entries without mode bits
// become plain files.
func Zip(ctx context.Context, r io.ReaderAt, size int64, root *os.Root, opts Options) error {
	w := newWriter(ctx, root, opts, size)
	zr, err := zip.NewReader(r, size)
	// Names are judged below, by rules that are the same for every archive.
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	for _, f := range zr.File {
		mode := f.Mode()
		if f.Flags&flagEncrypted != 0 {
			return fmt.Errorf("%q is encrypted", clip(f.Name))
		}
		if mode.IsDir() != strings.HasSuffix(f.Name, "/") {
			return fmt.Errorf("%w: %q is marked as a folder only by its mode or only by its name", ErrCorrupt, clip(f.Name))
		}
		place, err := w.begin(f.Name, mode)
		if err != nil {
			return err
		}
		if place == "" {
			continue
		}
		if err := putZipped(w, place, f); err != nil {
			return err
		}
	}
	return nil
}

func putZipped(w *writer, place string, f *zip.File) error {
	rc, err := f.Open()
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrCorrupt, clip(f.Name), err)
	}
	defer rc.Close()
	err = w.put(place, f.Mode(), &reader{w.ctx, rc, w.budget})
	if errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) || isFlate(err) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// isFlate reports whether err is about damaged deflate data.
func isFlate(err error) bool {
	var bad flate.CorruptInputError
	return errors.As(err, &bad)
}

// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// entry is a file of the bundle, by its path or, where that is empty, its text.
type entry struct {
	name string // in the bundle, below its folder
	mode fs.FileMode
	path string
	text []byte
}

// epoch is when everything in a bundle was last changed.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (b *bundler) add(name, file string) {
	b.entries = append(b.entries, entry{name: name, mode: 0o644, path: file})
}

func (b *bundler) addText(name string, mode fs.FileMode, text []byte) {
	b.entries = append(b.entries, entry{name: name, mode: mode, text: text})
}

// addTree adds the files of a folder.
func (b *bundler) addTree(name, dir string) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(below string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{name: path.Join(name, below), mode: 0o644, path: filepath.Join(dir, below)}
		if info.Mode()&0o100 != 0 {
			e.mode = 0o755
		}
		b.entries = append(b.entries, e)
		return nil
	})
}

// archive writes the entries, in the order of their names, and the sha256 of
// the whole beside it.
func (b *bundler) archive(ctx context.Context) (sum string, size int64, err error) {
	slices.SortFunc(b.entries, func(x, y entry) int { return strings.Compare(x.name, y.name) })
	if err := os.MkdirAll(filepath.Dir(b.Out), 0o777); err != nil {
		return "", 0, err
	}
	out, err := renameio.NewPendingFile(b.Out, renameio.WithPermissions(0o644))
	if err != nil {
		return "", 0, err
	}
	defer out.Cleanup()
	digest := sha256.New()
	counted := &counter{w: io.MultiWriter(out, digest)}
	w := tar.NewWriter(counted)
	bar := b.Progress.Bar("bundling", int64(len(b.entries)), term.Count)
	for _, e := range b.entries {
		err := ctx.Err()
		if err == nil {
			err = e.put(w, "sparsek-"+b.Version)
		}
		if err != nil {
			bar.Fail(err)
			return "", 0, err
		}
		bar.Add(1)
	}
	bar.Done()
	if err := errors.Join(w.Close(), out.CloseAtomicallyReplace()); err != nil {
		return "", 0, err
	}
	sum = hex.EncodeToString(digest.Sum(nil))
	line := fmt.Sprintf("%s  %s\n", sum, filepath.Base(b.Out))
	return sum, counted.n, renameio.WriteFile(b.Out+".sha256", []byte(line), 0o644)
}

// put writes an entry below folder.
func (e entry) put(w *tar.Writer, folder string) error {
	var from io.Reader = bytes.NewReader(e.text)
	size := int64(len(e.text))
	if e.path != "" {
		f, err := os.Open(e.path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		from, size = f, info.Size()
	}
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, e.name), Mode: int64(e.mode), Size: size,
		ModTime: epoch, Uname: "root", Gname: "root"})
	if err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	if _, err := io.Copy(w, from); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	return nil
}

// counter counts what is written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(data []byte) (int, error) {
	n, err := c.w.Write(data)
	c.n += int64(n)
	return n, err
}

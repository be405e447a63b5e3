// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzzLimits keep a round cheap.
var fuzzLimits = Limits{Entries: 50, Bytes: 64 << 10, Ratio: 200}

// checkContained fails if unpacking left anything but files and folders of
// the destination, or more than the limits allow.
func checkContained(t *testing.T, sandbox, dir string) {
	t.Helper()
	var files int
	var size int64
	err := filepath.WalkDir(sandbox, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() && !d.IsDir() {
			t.Fatalf("%s is %v", p, d.Type())
		}
		if !d.IsDir() {
			rel, err := filepath.Rel(dir, p)
			if err != nil || !filepath.IsLocal(rel) {
				t.Fatalf("%s lies outside the destination", p)
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			files, size = files+1, size+info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files > fuzzLimits.Entries || size > fuzzLimits.Bytes {
		t.Fatalf("%d files of %d bytes", files, size)
	}
}

// checkApart fails if two names below dir would meet in a file system that
// ignores letter case, or one could not be written in UTF-8.
func checkApart(t *testing.T, dir string) {
	t.Helper()
	names := slices.Collect(maps.Keys(listing(t, dir)))
	for i, name := range names {
		if !utf8.ValidString(name) {
			t.Fatalf("%q is not UTF-8", name)
		}
		for _, other := range names[:i] {
			if strings.EqualFold(name, other) {
				t.Fatalf("%q and %q differ in letter case alone", name, other)
			}
		}
	}
}

func fuzzArchive(t *testing.T, run func(t testing.TB, dir string, data []byte, opts Options) error, data []byte) {
	t.Helper()
	sandbox := t.TempDir()
	dir := filepath.Join(sandbox, "a", "b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := run(t, dir, data, Options{Limits: fuzzLimits})
	checkContained(t, sandbox, dir)
	checkApart(t, dir)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the file system refused what the rules should have: %v", err)
	}
}

// hostile are archives of every sort that is refused, and one that is not.
var hostile = [][]entry{
	{{name: "a/b", body: "x", mode: 0o755}, {name: "c/", mode: fs.ModeDir | 0o755}},
	{{name: "../x", body: "x"}},
	{{name: "/x", body: "x"}},
	{{name: "l", mode: fs.ModeSymlink | 0o777, kind: tar.TypeSymlink, link: "..", body: ".."}, {name: "l/x", body: "y"}},
	{{name: "h", kind: tar.TypeLink, link: "/etc/passwd"}},
	{{name: "d", mode: fs.ModeDevice | 0o600, kind: tar.TypeBlock}},
	{{name: "A", body: "x"}, {name: "a", body: "y"}},
	{{name: "A/x", body: "x"}, {name: "a/y", body: "y"}},
	{{name: "a", body: "x"}, {name: "a/b", body: "y"}},
	{{name: "latin\xe9", body: "x"}},
	{{name: "bomb", body: strings.Repeat("\x00", 100<<10)}},
	{{name: strings.Repeat("long/", 60) + "name", body: "x"}},
}

// FuzzTarGz fuzzes the archive, and the stream inside of it, which behind
// gzip's check sum no change to the archive would reach.
func FuzzTarGz(f *testing.F) {
	for _, entries := range hostile {
		data := tarGz(f, tarEntries(entries)...)
		f.Add(data, true)
		zr, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			f.Fatal(err)
		}
		stream, err := io.ReadAll(zr)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream[:min(len(stream), 8<<10)], false)
	}
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		if !compressed {
			var buf bytes.Buffer
			zw := gzip.NewWriter(&buf)
			if _, err := zw.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := zw.Close(); err != nil {
				t.Fatal(err)
			}
			data = buf.Bytes()
		}
		fuzzArchive(t, runTar, data)
	})
}

// tarEntries are entries without what a header of their kind may not have.
func tarEntries(entries []entry) []entry {
	entries = slices.Clone(entries)
	for i := range entries {
		if entries[i].kind != 0 {
			entries[i].body = ""
		}
	}
	return entries
}

func FuzzZip(f *testing.F) {
	for _, entries := range hostile {
		f.Add(zipped(f, entries...))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzArchive(t, runZip, data) })
}

func FuzzCleanName(f *testing.F) {
	for _, s := range []string{"a/b", "./a", "../a", "/a", "a//b", "a\\b", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := cleanName(name)
		if err == nil && clean != "" && !filepath.IsLocal(clean) {
			t.Fatalf("%q became %q", name, clean)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// fuzzLimits keep a round cheap.
var fuzzLimits = Limits{Entries: 50, Bytes: 1 << 20, Ratio: 200}

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

func fuzzArchive(f *testing.F, run func(t testing.TB, dir string, data []byte, opts Options) error) {
	f.Fuzz(func(t *testing.T, data []byte) {
		sandbox := t.TempDir()
		dir := filepath.Join(sandbox, "a", "b")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = run(t, dir, data, Options{Limits: fuzzLimits})
		checkContained(t, sandbox, dir)
	})
}

func FuzzTarGz(f *testing.F) {
	f.Add(tarGz(f, entry{name: "a/b", body: "x", mode: 0o755}, entry{name: "../x"}))
	f.Add(tarGz(f, entry{name: "l", kind: tar.TypeSymlink, link: ".."}, entry{name: "l/x", body: "y"}))
	f.Add(tarGz(f, entry{name: "h", kind: tar.TypeLink, link: "/etc/passwd"}))
	fuzzArchive(f, runTar)
}

func FuzzZip(f *testing.F) {
	f.Add(zipped(f, entry{name: "a/b", body: "x", mode: 0o755}, entry{name: "../x"}))
	f.Add(zipped(f, entry{name: "l", body: "..", mode: fs.ModeSymlink | 0o777}, entry{name: "l/x", body: "y"}))
	f.Add(zipped(f, entry{name: "A", body: "x"}, entry{name: "a", body: "y"}))
	fuzzArchive(f, runZip)
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

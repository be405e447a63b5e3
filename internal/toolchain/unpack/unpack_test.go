// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// entry is a member of a test archive; the zero mode is one the archive does
// not state.
type entry struct {
	name string
	body string
	mode fs.FileMode
	kind byte // tar.Type*; 0 for what mode says
	link string
}

func tarGz(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.body)), Typeflag: e.kind, Linkname: e.link}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
			if e.mode.IsDir() {
				h.Typeflag = tar.TypeDir
			}
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := zip.NewWriter(&buf)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, NonUTF8: false}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		w, err := zw.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func runTar(t testing.TB, dir string, data []byte, opts Options) error {
	return TarGz(context.Background(), bytes.NewReader(data), int64(len(data)), openRoot(t, dir), opts)
}

func runZip(t testing.TB, dir string, data []byte, opts Options) error {
	return Zip(context.Background(), bytes.NewReader(data), int64(len(data)), openRoot(t, dir), opts)
}

// listing maps each file below dir to its mode and contents.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		body, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		got[rel] = info.Mode().String() + " " + string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestModesAndContents(t *testing.T) {
	entries := []entry{
		{name: "d/", mode: fs.ModeDir | 0o700},
		{name: "d/plain", body: "p", mode: 0o664},
		{name: "e/run", body: "r", mode: 0o744},
		{name: "none", body: ""},
		{name: "./dot", body: "x", mode: 0o600},
	}
	want := map[string]string{
		"d/plain": "-rw-r--r-- p", "e/run": "-rwxr-xr-x r", "none": "-rw-r--r-- ", "dot": "-rw-r--r-- x",
	}
	for name, run := range map[string]func(string) error{
		"tar": func(dir string) error { return runTar(t, dir, tarGz(t, entries...), Options{}) },
		"zip": func(dir string) error { return runZip(t, dir, zipped(t, entries...), Options{}) },
	} {
		dir := t.TempDir()
		if err := run(dir); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, listing(t, dir)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"/etc/passwd", "../up", "a/../../up", "a/..", "..", ".", "a//b", "a/./b", "",
		`a\..\b`, `C:x`, "nul\x00", "new\nline", "latin\xe9", strings.Repeat("a", 256),
		strings.Repeat("abcdefg/", 200) + "x",
	} {
		data := zipped(t, entry{name: name, body: "x", mode: 0o644})
		dir := t.TempDir()
		if err := runZip(t, dir, data, Options{}); !errors.Is(err, ErrName) {
			t.Errorf("zip, %q: got %v", clip(name), err)
		}
		if _, err := cleanName(name); !errors.Is(err, ErrName) {
			t.Errorf("%q: got %v", clip(name), err)
		}
		if n := len(listing(t, dir)); n != 0 {
			t.Errorf("%q: wrote %d files", clip(name), n)
		}
	}
	if err := runTar(t, t.TempDir(), tarGz(t, entry{name: "../up", mode: 0o644}), Options{}); !errors.Is(err, ErrName) {
		t.Errorf("tar: got %v", err)
	}
	// A name is refused even where the entry is not wanted.
	none := Options{Select: func(string) (string, bool) { return "", false }}
	if err := runTar(t, t.TempDir(), tarGz(t, entry{name: "../up", mode: 0o644}), none); !errors.Is(err, ErrName) {
		t.Errorf("tar, not selected: got %v", err)
	}
}

func TestLinksAndDevices(t *testing.T) {
	for _, kind := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo} {
		e := entry{name: "x", kind: kind}
		if kind == tar.TypeSymlink || kind == tar.TypeLink {
			e.link = "/etc/passwd"
		}
		if err := runTar(t, t.TempDir(), tarGz(t, e), Options{}); !errors.Is(err, ErrType) {
			t.Errorf("tar type %q: got %v", kind, err)
		}
	}
	for _, mode := range []fs.FileMode{fs.ModeSymlink, fs.ModeDevice, fs.ModeNamedPipe, fs.ModeSocket} {
		data := zipped(t, entry{name: "x", body: "/etc/passwd", mode: mode | 0o777})
		if err := runZip(t, t.TempDir(), data, Options{}); !errors.Is(err, ErrType) {
			t.Errorf("zip mode %v: got %v", mode, err)
		}
	}
	// A link that is not wanted does no harm.
	skip := Options{Select: func(name string) (string, bool) { return name, name != "x" }}
	dir := t.TempDir()
	if err := runTar(t, dir, tarGz(t, entry{name: "x", kind: tar.TypeSymlink, link: "y"}, entry{name: "z"}), skip); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a link was made")
	}
}

func TestSparseFilesAreNoFiles(t *testing.T) {
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeGNUSparse, Size: 1 << 40},
		{Typeflag: tar.TypeReg, Size: 1 << 40, PAXRecords: map[string]string{"GNU.sparse.major": "1"}},
	} {
		if modeOf(h).IsRegular() {
			t.Errorf("type %q with %v passes for a file", h.Typeflag, h.PAXRecords)
		}
	}
}

func TestNeverThroughALinkInTheWay(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d/x", "f"} {
		if err := runTar(t, dir, tarGz(t, entry{name: name, body: "x"}), Options{}); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	if n := len(listing(t, outside)); n != 0 {
		t.Errorf("%d files outside", n)
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	if err := runTar(t, dir, tarGz(t, entry{name: "f", body: "first"}), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := runTar(t, dir, tarGz(t, entry{name: "f", body: "second"}), Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(map[string]string{"f": "-rw-r--r-- first"}, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestCollisions(t *testing.T) {
	for _, names := range [][]string{
		{"a", "a"}, {"a", "A"}, {"dir/x", "DIR/y"}, {"a", "a/b"}, {"a/b", "a"}, {"\u212a", "k"}, {"ſ", "S"},
	} {
		var entries []entry
		for _, n := range names {
			entries = append(entries, entry{name: n, body: "x", mode: 0o644})
		}
		if err := runTar(t, t.TempDir(), tarGz(t, entries...), Options{}); !errors.Is(err, ErrRepeated) {
			t.Errorf("tar %q: got %v", names, err)
		}
		if err := runZip(t, t.TempDir(), zipped(t, entries...), Options{}); !errors.Is(err, ErrRepeated) {
			t.Errorf("zip %q: got %v", names, err)
		}
	}
}

func TestBombs(t *testing.T) {
	zeros := strings.Repeat("\x00", 3<<20)
	entries := []entry{{name: "a", body: zeros}, {name: "b", body: "x"}}
	for name, limits := range map[string]Limits{
		"count": {Entries: 1, Bytes: 1 << 30, Ratio: 10_000},
		"size":  {Entries: 10, Bytes: 1 << 20, Ratio: 10_000},
		"ratio": {Entries: 10, Bytes: 1 << 30, Ratio: 2},
	} {
		if err := runTar(t, t.TempDir(), tarGz(t, entries...), Options{Limits: limits}); !errors.Is(err, ErrTooBig) {
			t.Errorf("tar, %s: got %v", name, err)
		}
		if err := runZip(t, t.TempDir(), zipped(t, entries...), Options{Limits: limits}); !errors.Is(err, ErrTooBig) {
			t.Errorf("zip, %s: got %v", name, err)
		}
	}
	// The limits themselves may be reached.
	exact := Options{Limits: Limits{Entries: 2, Bytes: 3<<20 + 1, Ratio: 10_000}}
	if err := runZip(t, t.TempDir(), zipped(t, entries...), exact); err != nil {
		t.Error(err)
	}
	// In a tar stream what is skipped is unpacked all the same, so it counts.
	none := Options{Limits: Limits{Entries: 10, Bytes: 1 << 20, Ratio: 10_000}, Select: func(string) (string, bool) { return "", false }}
	if err := runTar(t, t.TempDir(), tarGz(t, entries...), none); !errors.Is(err, ErrTooBig) {
		t.Errorf("tar, skipped: got %v", err)
	}
}

func TestDamage(t *testing.T) {
	body := strings.Repeat("some text that compresses ", 1000)
	tgz, zp := tarGz(t, entry{name: "a", body: body}), zipped(t, entry{name: "a", body: body})
	for cut := range len(tgz) {
		if err := runTar(t, t.TempDir(), tgz[:cut], Options{}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("tar cut at %d of %d: got %v", cut, len(tgz), err)
		}
	}
	for _, cut := range []int{0, 10, len(zp) / 2, len(zp) - 1} {
		if err := runZip(t, t.TempDir(), zp[:cut], Options{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("zip cut at %d: got %v", cut, err)
		}
	}
	// Any one bit wrong gives an error or the right file, never a wrong one.
	for i := range zp {
		bad := bytes.Clone(zp)
		bad[i] ^= 0x10
		dir := t.TempDir()
		if err := runZip(t, dir, bad, Options{}); err == nil {
			for _, got := range listing(t, dir) {
				if _, text, _ := strings.Cut(got, " "); text != body {
					t.Fatalf("bit of byte %d: wrong contents accepted", i)
				}
			}
		}
	}
}

func TestSelect(t *testing.T) {
	data := tarGz(t, entry{name: "pkg/inc/a.h", body: "a"}, entry{name: "pkg/test/b", body: "b"})
	under := func(prefix, to string) Options {
		return Options{Select: func(name string) (string, bool) {
			rest, ok := strings.CutPrefix(name, prefix)
			return to + rest, ok
		}}
	}
	dir := t.TempDir()
	if err := runTar(t, dir, data, under("pkg/inc/", "out/")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"out/a.h": "-rw-r--r-- a"}, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
	if err := runTar(t, t.TempDir(), data, under("pkg/inc/", "../")); !errors.Is(err, ErrName) {
		t.Errorf("a place outside: got %v", err)
	}
}

func TestFileByKind(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(t.TempDir(), "0123abcd")
	if err := os.WriteFile(archive, zipped(t, entry{name: "a", body: "x"}), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := File(context.Background(), archive, "x-1.whl", openRoot(t, dir), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"x.tar.gz", "x.rar"} {
		if err := File(context.Background(), archive, kind, openRoot(t, t.TempDir()), Options{}); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	data := tarGz(t, entry{name: "a", body: "x"})
	err := TarGz(ctx, bytes.NewReader(data), int64(len(data)), openRoot(t, t.TempDir()), Options{})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestBudgetIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 5000).Draw(t, "size")
		limit := rapid.Int64Range(1, 5000).Draw(t, "limit")
		chunk := rapid.IntRange(1, 600).Draw(t, "chunk")
		b := newBudget(Limits{Entries: 1, Bytes: limit, Ratio: 1 << 40}, 1)
		r := &reader{context.Background(), bytes.NewReader(make([]byte, size)), b}
		var n int
		var err error
		for buf := make([]byte, chunk); err == nil; {
			var m int
			m, err = r.Read(buf)
			n += m
		}
		if tooBig := errors.Is(err, ErrTooBig); tooBig != (int64(size) > limit) {
			t.Fatalf("%d bytes with a limit of %d: %v", size, limit, err)
		}
		if int64(n) > limit {
			t.Fatalf("%d bytes came through a limit of %d", n, limit)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package wheel

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/build/version"
)

// world is a folder of sources and one of a build. Programs are the test's own.
func world(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"src/sparsek/__init__.py": "a = 1\n", "src/sparsek/py.typed": "", "src/sparsek/sub/x.py": "", "src/other/__init__.py": "",
		"src/sparsek/__pycache__/y.py": "z", "src/sparsek/notes.txt": "z", "src/sparsek/y.pyc": "z", "src/sparsek.egg-info/z.py": "z",
		"build/lib/libsparsek.so": string(program), "build/lib/libsparsek.so.provenance.json": "{}", "build/bin/sparsek": string(program),
		"build/include/sparsek.h": "h", "build/licenses/LICENSE": "licence", "build/licenses/NOTICES.md": "notices",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return Options{Sources: filepath.Join(dir, "src"), Build: filepath.Join(dir, "build"), Version: "1.2.3", SBOM: []byte("{}"),
		Licences: map[string][]byte{"modules/m@v1/LICENSE": []byte("m")}, Dir: filepath.Join(dir, "out")}
}

func readWheel(t *testing.T, path string) map[string]string {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := map[string]string{}
	for _, f := range r.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
		want := os.FileMode(0o644)
		if f.Name == "sparsek/bin/sparsek" || f.Name == "sparsek/lib/libsparsek.so" {
			want = 0o755
		}
		if f.Mode() != want {
			t.Errorf("%s has mode %v", f.Name, f.Mode())
		}
	}
	return files
}

func TestWheel(t *testing.T) {
	o := world(t)
	made, err := Write(o)
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(made.Path); !strings.HasPrefix(name, "sparsek-1.2.3-py3-none-manylinux_2_") || !strings.HasSuffix(name, "_x86_64.whl") {
		t.Errorf("it is called %s", name)
	}
	files := readWheel(t, made.Path)
	const info = "sparsek-1.2.3.dist-info/"
	for _, want := range []string{"sparsek/__init__.py", "sparsek/py.typed", "sparsek/sub/x.py", "other/__init__.py", "sparsek/lib/libsparsek.so",
		"sparsek/lib/libsparsek.so.provenance.json", "sparsek/bin/sparsek", "sparsek/include/sparsek.h", info + "METADATA", info + "WHEEL",
		info + "RECORD", info + "entry_points.txt", info + "licenses/LICENSE", info + "licenses/NOTICES.md",
		info + "licenses/modules/m@v1/LICENSE", info + "sboms/sparsek.cdx.json"} {
		if _, ok := files[want]; !ok {
			t.Errorf("it lacks %s", want)
		}
	}
	if len(files) != 16 {
		t.Errorf("it has %d files", len(files))
	}
	lines := strings.Split(strings.TrimSpace(files[info+"RECORD"]), "\n")
	if len(lines) != len(files) || lines[len(lines)-1] != info+"RECORD,," {
		t.Errorf("RECORD has %d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	for _, line := range lines[:len(lines)-1] {
		name, _, _ := strings.Cut(line, ",")
		sum := sha256.Sum256([]byte(files[name]))
		if want := fmt.Sprintf("%s,sha256=%s,%d", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name])); line != want {
			t.Errorf("RECORD says %q, want %q", line, want)
		}
	}
	for _, want := range []string{"Version: 1.2.3\n", "License-File: LICENSE\n", "License-File: modules/m@v1/LICENSE\n", "\n\n# sparsek\n"} {
		if !strings.Contains(files[info+"METADATA"], want) {
			t.Errorf("METADATA lacks %q", want)
		}
	}
	if tag := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(made.Path), "sparsek-1.2.3-"), ".whl"); !strings.Contains(files[info+"WHEEL"], "Tag: "+tag+"\n") {
		t.Errorf("WHEEL does not have the tag %s: %s", tag, files[info+"WHEEL"])
	}
}

func TestTheSameBytesTwice(t *testing.T) {
	o := world(t)
	first, err := Write(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(o.Sources, "sparsek/__init__.py"), later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(o.Build, "bin/sparsek"), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Dir = t.TempDir()
	second, err := Write(o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(second.Path); err != nil || !bytes.Equal(text, again) || first.SHA256 != second.SHA256 {
		t.Errorf("other bytes, %v", err)
	}
}

func TestWhatIsNoWheel(t *testing.T) {
	for _, c := range []struct {
		change func(o Options) error
		says   string
	}{
		{func(o Options) error { return os.Remove(filepath.Join(o.Build, "bin/sparsek")) }, "not complete"},
		{func(o Options) error { return os.RemoveAll(filepath.Join(o.Build, "licenses")) }, "not complete"},
		{func(o Options) error {
			return os.WriteFile(filepath.Join(o.Build, "bin/sparsek"), []byte("#!/bin/sh\n"), 0o777)
		}, "EOF"},
		{func(o Options) error { return os.RemoveAll(o.Sources) }, "no such file"},
		{func(o Options) error { o.Licences["LICENSE"] = nil; return nil }, "two licences"},
	} {
		o := world(t)
		if err := c.change(o); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want an error that says %q", err, c.says)
		}
		if left, err := os.ReadDir(o.Dir); err == nil && len(left) > 0 {
			t.Errorf("%d files are written", len(left))
		}
	}
}

// The parts are those of the build and all else, and make up the whole.
func TestParts(t *testing.T) {
	made, err := Write(world(t))
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for i, p := range made.Parts {
		if sum += p.Bytes; p.Bytes <= 0 || i < len(built) && p.Name != built[i].to {
			t.Errorf("part %d is %+v", i, p)
		}
	}
	if len(made.Parts) != len(built)+1 || sum != made.Bytes {
		t.Errorf("%d parts of %d bytes, the wheel has %d", len(made.Parts), sum, made.Bytes)
	}
}

// A wheel that is too large is not written; the error says what makes it so.
func TestTooLarge(t *testing.T) {
	o := world(t)
	library := filepath.Join(o.Build, "lib/libsparsek.so")
	text, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, MaxBytes) // deflate makes it no smaller
	if _, err := rand.NewChaCha8([32]byte{}).Read(noise); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, append(text, noise...), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Write(o)
	if err == nil {
		t.Fatal("it is written")
	}
	said := regexp.MustCompile(`it would have (\d+) bytes, (\d+) more than the 15000000 .* sparsek/lib/libsparsek.so (\d+), .* sparsek/bin/sparsek (\d+), .* all else (\d+);`).FindStringSubmatch(err.Error())
	if said == nil {
		t.Fatalf("got %v", err)
	}
	number := func(i int) int {
		n, err := strconv.Atoi(said[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if number(1) != MaxBytes+number(2) || number(3) < MaxBytes || number(3) > number(1) || number(4) > number(2) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(o.Dir); err == nil && len(left) > 0 {
		t.Errorf("%d files are written", len(left))
	}
}

// The package says its version by itself: it may run without being installed.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../../../python/src/sparsek/__init__.py")
	if err != nil {
		t.Fatal(err)
	}
	if want := "__version__ = \"" + version.Sparsek + "\"\n"; !strings.Contains(string(text), want) {
		t.Errorf("the package does not have the line %s", want)
	}
}

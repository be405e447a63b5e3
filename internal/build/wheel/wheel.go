// SPDX-License-Identifier: Apache-2.0

package wheel

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
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
)

// Options says what goes into a wheel.
type Options struct {
	Sources  string            // the folder that holds the packages
	Build    string            // the build folder, with library and program
	Version  string            // of sparsek
	Licences map[string][]byte // texts by their names, besides those of the build
	SBOM     []byte            // in CycloneDX's format
	Dir      string            // where the wheel is written, under the name that its contents give
}

// MaxBytes is how large a wheel may be.
const MaxBytes = 15_000_000

// Result is what was written.
type Result struct {
	Path   string
	Bytes  int64
	SHA256 string
	Parts  []Part // of Bytes, whose sum they are
}

var (
	//go:embed METADATA.in
	metadata string
	//go:embed DESCRIPTION.md
	description string
)

// built are the files of the build, and what they are called in the package.
var built = []struct {
	from, to string
	mode     fs.FileMode
}{
	{"lib/libsparsek.so", "sparsek/lib/libsparsek.so", 0o755},
	{"lib/libsparsek.so.provenance.json", "sparsek/lib/libsparsek.so.provenance.json", 0o644},
	{"bin/sparsek", "sparsek/bin/sparsek", 0o755},
	{"include/sparsek.h", "sparsek/include/sparsek.h", 0o644},
}

// epoch is when everything in a wheel was last changed: the first time that a
// zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

type entry struct {
	name string
	mode fs.FileMode
	text []byte
}

// Write writes the wheel, whole or not at all.
func Write(o Options) (Result, error) {
	result, err := write(o)
	if err != nil {
		return Result{}, fmt.Errorf("writing a wheel: %w", err)
	}
	return result, nil
}

func write(o Options) (Result, error) {
	var entries []entry
	var binaries [][]byte
	for _, b := range built {
		text, err := os.ReadFile(filepath.Join(o.Build, b.from))
		if err != nil {
			return Result{}, fmt.Errorf("the build is not complete: %w", err)
		}
		entries = append(entries, entry{b.to, b.mode, text})
		if b.mode&0o100 != 0 {
			binaries = append(binaries, text)
		}
	}
	sources, err := readSources(o.Sources)
	if err != nil {
		return Result{}, err
	}
	tag, err := platformTag(binaries)
	if err != nil {
		return Result{}, err
	}
	info := "sparsek-" + o.Version + ".dist-info"
	described, err := o.describe(info, tag)
	if err != nil {
		return Result{}, err
	}
	entries = slices.Concat(entries, sources, described)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	entries = append(entries, record(info, entries)) // the last one, as is the custom
	text, err := archive(entries)
	if err != nil {
		return Result{}, err
	}
	parts, err := weigh(text)
	if err != nil {
		return Result{}, err
	}
	if len(text) > MaxBytes {
		return Result{}, tooLarge(int64(len(text)), parts)
	}
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return Result{}, err
	}
	sum := sha256.Sum256(text)
	to := filepath.Join(o.Dir, "sparsek-"+o.Version+"-"+tag+".whl")
	return Result{to, int64(len(text)), hex.EncodeToString(sum[:]), parts}, renameio.WriteFile(to, text, 0o644)
}

// readSources reads the packages: everything below dir but what Python or the
// tools leave there.
func readSources(dir string) ([]entry, error) {
	var entries []entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "__pycache__" || strings.HasSuffix(d.Name(), ".egg-info")):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".py" && path.Base(name) != "py.typed":
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		entries = append(entries, entry{name, 0o644, text})
		return err
	})
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%s has no packages", dir)
	}
	return entries, err
}

// describe makes what installers read.
func (o Options) describe(info, tag string) ([]entry, error) {
	licences := map[string][]byte{}
	names, err := os.ReadDir(filepath.Join(o.Build, "licenses"))
	if err != nil {
		return nil, fmt.Errorf("the build is not complete: %w", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(o.Build, "licenses", name.Name()))
		if err != nil {
			return nil, err
		}
		licences[name.Name()] = text
	}
	for name, text := range o.Licences {
		if _, twice := licences[name]; twice {
			return nil, errors.New("two licences are called " + name)
		}
		licences[name] = text
	}
	head := strings.ReplaceAll(metadata, "@VERSION@", o.Version)
	var entries []entry
	for name, text := range licences {
		entries = append(entries, entry{info + "/licenses/" + name, 0o644, text})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range entries {
		head += "License-File: " + strings.TrimPrefix(e.name, info+"/licenses/") + "\n"
	}
	return append(entries,
		entry{info + "/METADATA", 0o644, []byte(head + "\n" + description)},
		entry{info + "/WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: sparsek " + o.Version + "\nRoot-Is-Purelib: false\nTag: " + tag + "\n")},
		entry{info + "/entry_points.txt", 0o644, []byte("[console_scripts]\nsparsek = sparsek.__main__:main\n")},
		entry{info + "/sboms/sparsek.cdx.json", 0o644, o.SBOM},
	), nil
}

// record lists the entries with their digests, and itself without one.
func record(info string, entries []entry) entry {
	var text strings.Builder
	for _, e := range entries {
		sum := sha256.Sum256(e.text)
		fmt.Fprintf(&text, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.text))
	}
	name := info + "/RECORD"
	fmt.Fprintf(&text, "%s,,\n", name)
	return entry{name, 0o644, []byte(text.String())}
}

// archive is the entries as a zip.
func archive(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestCompression) })
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(e.mode)
		to, err := w.CreateHeader(h)
		if err == nil {
			_, err = to.Write(e.text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

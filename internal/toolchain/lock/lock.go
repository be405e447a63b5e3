// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"
)

// FileName is what the lock is called in the root of a checkout.
const FileName = "toolchain.lock.json"

// Lock is the whole of the pins.
type Lock struct {
	CUTLASS CUTLASS `json:"cutlass"`
	CUDA    CUDA    `json:"cuda"`
	// Tools are packages of programs that check the sources. Nothing of them
	// goes into the library.
	Tools []Package `json:"tools,omitempty"`
}

// ClangFormat is the name of the package of clang-format, among Tools.
const ClangFormat = "clang-format"

// Tool returns the pin of a package of Tools.
func (l *Lock) Tool(name string) (Package, error) {
	for _, p := range l.Tools {
		if p.Name == name {
			return p, nil
		}
	}
	return Package{}, fmt.Errorf("%s has no %q under \"tools\": restore the file from version control", FileName, name)
}

// CUTLASS pins a release of the CUTLASS headers.
type CUTLASS struct {
	// Version is what include/cutlass/version.h says, a semantic version.
	Version string `json:"version"`
	// Constraint is what a Version must satisfy, as in "~4.3".
	Constraint string `json:"constraint"`
	// Commit of NVIDIA's repository, 40 hex digits: which one of those that
	// call themselves Version.
	Commit string `json:"commit"`
	// Include and Tools are the digests (h1: of golang.org/x/mod/sumdb/dirhash)
	// of the folders include and tools/util/include. They are its identity.
	Include string `json:"include"`
	Tools   string `json:"tools"`
	// Carriers hold the tree, in the order in which they are tried.
	Carriers []Carrier `json:"carriers"`
}

// Carrier is an archive that has the CUTLASS tree in it: either at a URL, or
// in a file of a Python package.
type Carrier struct {
	// URL of a .tar.gz or .zip whose bytes are not pinned, only bounded by
	// MaxBytes. "{commit}" in URL and Prefix stands for the commit.
	URL      string `json:"url,omitempty"`
	MaxBytes int64  `json:"max_bytes,omitempty"`
	// Package that has the tree in it.
	Package *Package `json:"package,omitempty"`
	// Prefix is the folder of the tree in the archive; it ends in "/".
	Prefix string `json:"prefix"`
}

// CUDA pins the packages that make up the CUDA compiler.
type CUDA struct {
	// Version is what "nvcc --version" says after the V, as in "13.0.88".
	Version string    `json:"version"`
	Wheels  []Package `json:"wheels"`
}

// Package pins a file of a Python package, whichever index carries it.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"` // opaque
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"` // 64 lower-case hex digits
}

func (p Package) String() string { return p.Name + " " + p.Version }

// PURL is the package's URL, which names it to programs wherever it is to be
// had.
func (p Package) PURL() string { return "pkg:pypi/" + p.Name + "@" + p.Version }

// Packages are all that the lock takes from a package index.
func (l *Lock) Packages() []Package {
	all := append([]Package(nil), l.CUDA.Wheels...)
	for _, c := range l.CUTLASS.Carriers {
		if c.Package != nil {
			all = append(all, *c.Package)
		}
	}
	return append(all, l.Tools...)
}

// Load reads and checks the lock at path.
func Load(path string) (*Lock, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; run in a checkout, or restore the file from version control", err)
	}
	if err != nil {
		return nil, err
	}
	l, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Parse reads and checks a lock. Fields it does not know are refused: a
// misspelt pin must not go unnoticed.
func Parse(data []byte) (*Lock, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var l Lock
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("not a lock: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a lock: there is more after its end")
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return &l, nil
}

// Format writes the lock as Save does.
func (l *Lock) Format() ([]byte, error) {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// Save checks the lock and puts it in place of the one at path, whole or not
// at all.
func (l *Lock) Save(path string) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("refuse to write %s: %w", path, err)
	}
	data, err := l.Format()
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

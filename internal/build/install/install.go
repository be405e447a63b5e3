// SPDX-License-Identifier: Apache-2.0

package install

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Options says what goes where.
type Options struct {
	Build   string // the build folder
	Prefix  string // absolute; where the files will be used
	DestDir string // put before Prefix where a package is made; may be empty
	Version string // of sparsek
}

//go:embed sparsek.pc.in
var pkgConfig string

// soname is the library's file: programs that are linked with it ask for this name, which has the version of its ABI.
// libsparsek.so is a link to it, for the linker and for programs that open the library at run time.
const soname = "libsparsek.so.1"

// Run installs the library, the header, the pkg-config file, the program and
// the licences, and returns the files' paths. Each file is written whole or
// not at all; nothing is written where the build is not complete.
func Run(o Options) ([]string, error) {
	if !filepath.IsAbs(o.Prefix) {
		return nil, fmt.Errorf("installing: the prefix %q is not absolute", o.Prefix)
	}
	type file struct {
		to   string
		mode fs.FileMode
		text []byte
	}
	files := []file{{"lib/pkgconfig/sparsek.pc", 0o644, []byte(strings.ReplaceAll(pkgConfig, "@VERSION@", o.Version))}}
	add := func(from, to string, mode fs.FileMode) error {
		text, err := os.ReadFile(filepath.Join(o.Build, from))
		if err != nil {
			return fmt.Errorf("installing: the build is not complete: %w", err)
		}
		files = append(files, file{to, mode, text})
		return nil
	}
	if err := errors.Join(
		add("lib/libsparsek.so", "lib/"+soname, 0o755),
		add("include/sparsek.h", "include/sparsek.h", 0o644),
		add("bin/sparsek", "bin/sparsek", 0o755),
	); err != nil {
		return nil, err
	}
	licenses, err := os.ReadDir(filepath.Join(o.Build, "licenses"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("installing: %w", err)
	}
	for _, entry := range licenses {
		if err := add(filepath.Join("licenses", entry.Name()), "share/licenses/sparsek/"+entry.Name(), 0o644); err != nil {
			return nil, err
		}
	}
	var written []string
	for _, f := range files {
		to := filepath.Join(o.DestDir, o.Prefix, f.to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return written, fmt.Errorf("installing: %w", err)
		}
		if err := renameio.WriteFile(to, f.text, f.mode, renameio.WithStaticPermissions(f.mode)); err != nil {
			return written, fmt.Errorf("installing: %w", err)
		}
		written = append(written, to)
	}
	link := filepath.Join(o.DestDir, o.Prefix, "lib/libsparsek.so")
	if err := renameio.Symlink(soname, link); err != nil {
		return written, fmt.Errorf("installing: %w", err)
	}
	return append(written, link), nil
}

// SPDX-License-Identifier: Apache-2.0

package repro

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/build"
	"github.com/sparsek/sparsek/internal/build/checkout"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
)

// Options says what to build twice.
type Options struct {
	Root      string               // of the checkout
	Toolchain *toolchain.Toolchain // prepared
	CXX       string               // host compiler; empty: g++
	Progress  *term.Reporter       // nil: silent
}

// DifferentError says where two builds of the same sources differ.
type DifferentError struct{ Differences []Difference }

func (e *DifferentError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the two builds differ in %d places:", len(e.Differences))
	for _, d := range e.Differences {
		fmt.Fprintf(&text, "\n  %s", d)
	}
	return text.String()
}

// site is where one of the two builds takes place.
type site struct {
	dir  string    // the checkout
	temp string    // for the compilers' temporary files
	time time.Time // of the sources
}

// Run builds the library twice and returns the SHA-256 of both, in hex. The
// builds differ in the checkout's folder and the length of its path, the
// toolchain's folder, the time, the sources' times and the folder of temporary
// files. It fails with a *DifferentError where the libraries do.
func Run(ctx context.Context, o Options) (string, error) {
	top, err := os.MkdirTemp("", "sparsek-repro-")
	if err != nil {
		return "", fmt.Errorf("building twice: %w", err)
	}
	defer os.RemoveAll(top)
	sites := []site{
		{filepath.Join(top, "a"), filepath.Join(top, "t"), time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)},
		{filepath.Join(top, "another", "and much longer", "path", "to-the-checkout"), filepath.Join(top, "other", "temporary files"), time.Now()},
	}
	for i, s := range sites {
		o.Progress.Printf("build %d of %d", i+1, len(sites))
		tools, err := elsewhere(o.Toolchain, filepath.Join(filepath.Dir(s.dir), "toolchain"))
		if err == nil {
			err = s.build(ctx, o, tools)
		}
		if err != nil {
			return "", fmt.Errorf("build %d of %d: %w", i+1, len(sites), err)
		}
	}
	return compareBuilds(sites[0].dir, sites[1].dir)
}

// elsewhere is the toolchain seen through a link at dir.
func elsewhere(t *toolchain.Toolchain, dir string) (*toolchain.Toolchain, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, err
	}
	if err := os.Symlink(t.Dir(), dir); err != nil {
		return nil, err
	}
	return t.Moved(dir), nil
}

// build builds at the site.
func (s site) build(ctx context.Context, o Options, tools *toolchain.Toolchain) error {
	if _, err := checkout.Export(ctx, o.Root, s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.temp, 0o777); err != nil {
		return err
	}
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, s.time, s.time))
	})
	if err != nil {
		return err
	}
	return build.MakeLibrary(ctx, build.Options{Root: s.dir, Toolchain: tools, CXX: o.CXX, TempDir: s.temp, Cache: "off",
		Progress: o.Progress})
}

// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock/cutlass"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
)

// CUTLASSName is how Wants names CUTLASS.
const CUTLASSName = "cutlass"

// compiler is the package whose version is that of nvcc.
const compiler = "nvidia-cuda-nvcc"

// maxWheel bounds a file whose size is not known before it is there.
const maxWheel = 1 << 30

// Wants maps the name of a package to the version it shall have, and
// CUTLASSName to a commit. A package that is not in it moves to the newest
// release that agrees with its pin in the first two numbers; CUTLASS stays.
type Wants map[string]string

// Update returns the lock that l becomes with the versions of wants. Each file
// that changes is downloaded once and pinned by the bytes that came, which
// must be those that the index lists. Neither l nor any file is changed: that
// is for Replace.
func Update(ctx context.Context, l *Lock, wants Wants, index *pyindex.Resolver, cache *fetch.Cache) (*Lock, error) {
	next := l.clone()
	u := &updater{index: index, cache: cache}
	known := map[string]bool{CUTLASSName: true}
	for _, list := range [][]Package{next.CUDA.Wheels, next.Tools} {
		for i := range list {
			w := &list[i]
			known[w.Name] = true
			if err := u.wheel(ctx, w, wants[w.Name]); err != nil {
				return nil, fmt.Errorf("update %s: %w", w.Name, err)
			}
			if w.Name == compiler {
				next.CUDA.Version = w.Version
			}
		}
	}
	for name := range wants {
		if !known[name] {
			return nil, fmt.Errorf("update: the lock has no %q", name)
		}
	}
	if commit := wants[CUTLASSName]; commit != "" && commit != l.CUTLASS.Commit {
		if err := u.cutlass(ctx, &next.CUTLASS, commit); err != nil {
			return nil, fmt.Errorf("update CUTLASS to %s: %w", commit, err)
		}
	}
	if err := next.Validate(); err != nil {
		return nil, fmt.Errorf("update: the new lock would not hold: %w", err)
	}
	return next, nil
}

func (l *Lock) clone() *Lock {
	c := *l
	c.CUDA.Wheels = slices.Clone(l.CUDA.Wheels)
	c.Tools = slices.Clone(l.Tools)
	c.CUTLASS.Carriers = slices.Clone(l.CUTLASS.Carriers)
	return &c
}

type updater struct {
	index *pyindex.Resolver
	cache *fetch.Cache
}

// wheel moves w to a version, or to the newest of its line for "".
func (u *updater) wheel(ctx context.Context, w *Package, version string) error {
	links, err := u.index.Files(ctx, w.Name)
	if err != nil {
		return err
	}
	link, version, err := choose(links, w, version)
	if err != nil || link.File == w.File {
		return err
	}
	sources := []fetch.Source{fetch.URL(link.URL)}
	return u.cache.Download(ctx, w.Name+" "+version, maxWheel, sources, func(file string) error {
		size, sum, err := measure(file)
		if err != nil {
			return err
		}
		if link.SHA256 != "" && link.SHA256 != sum {
			return fmt.Errorf("%w: %s lists %s, the fetched file has %s", fetch.ErrChecksum, link.From, link.SHA256, sum)
		}
		w.Version, w.File, w.Bytes, w.SHA256 = version, link.File, size, sum
		return nil
	})
}

// choose picks the wheel for Linux on x86_64 of a version, or the newest that
// agrees with the pin in the first two numbers.
func choose(links []pyindex.Link, pin *Package, version string) (best pyindex.Link, found string, err error) {
	for _, l := range links {
		v, ok := wheelVersion(l.File, pin.Name)
		switch {
		case !ok, l.Yanked:
		case version != "" && v == version:
			return l, v, nil
		case version == "" && line(v) == line(pin.Version) && (found == "" || older(found, v)):
			best, found = l, v
		}
	}
	if found == "" {
		wanted := version
		if wanted == "" {
			wanted = line(pin.Version) + ".*"
		}
		return best, "", fmt.Errorf("%w: no wheel of %s %s for Linux on x86_64", pyindex.ErrNotFound, pin.Name, wanted)
	}
	return best, found, nil
}

// wheelVersion reads the version out of the name of a wheel of a package for
// Linux with glibc ("manylinux") on x86_64.
func wheelVersion(file, name string) (string, bool) {
	parts := strings.Split(strings.TrimSuffix(file, ".whl"), "-")
	if len(parts) < 5 || !strings.HasSuffix(file, "x86_64.whl") || !strings.Contains(file, "manylinux") {
		return "", false
	}
	return parts[1], pyindex.Normalize(parts[0]) == pyindex.Normalize(name)
}

// line is the first two numbers of a version.
func line(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// older compares versions number by number, as many as they have. A part that
// is no number, of a pre-release say, counts as less than any number.
func older(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) < 0
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n := 0
		for _, c := range part {
			if c < '0' || c > '9' || n > 1<<40 {
				n = -1
				break
			}
			n = n*10 + int(c-'0')
		}
		all = append(all, n)
	}
	return all
}

func measure(file string) (int64, string, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// cutlass pins another commit by the tree that the carriers with a URL give.
// Packages hold one tree for ever, so they stay only with the same tree.
func (u *updater) cutlass(ctx context.Context, c *CUTLASS, commit string) error {
	if !commitPattern.MatchString(commit) {
		return errors.New("not 40 lower-case hex digits")
	}
	var tree *cutlass.Tree
	var carriers []Carrier
	var causes []error
	for _, carrier := range c.Carriers {
		if carrier.Package != nil {
			continue
		}
		carriers = append(carriers, carrier)
		if tree == nil {
			t, err := u.tree(ctx, carrier, commit)
			if err != nil {
				causes = append(causes, err)
				continue
			}
			tree = &t
		}
	}
	if tree == nil {
		return fmt.Errorf("no carrier gave the tree: %w", errors.Join(append(causes, errors.New("one with a url is needed"))...))
	}
	if tree.Include == c.Include && tree.Tools == c.Tools {
		carriers = c.Carriers
	}
	c.Version, c.Commit, c.Include, c.Tools, c.Carriers = tree.Version, commit, tree.Include, tree.Tools, carriers
	return nil
}

// tree reads the CUTLASS tree of a commit from a carrier with a URL.
func (u *updater) tree(ctx context.Context, c Carrier, commit string) (t cutlass.Tree, err error) {
	expand := strings.NewReplacer("{commit}", commit).Replace
	url := expand(c.URL)
	err = u.cache.Download(ctx, "CUTLASS "+commit[:12], c.MaxBytes, []fetch.Source{fetch.URL(url)}, func(file string) error {
		dir, err := os.MkdirTemp("", "cutlass")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		if err := cutlass.Unpack(ctx, file, path.Base(url), expand(c.Prefix), root); err != nil {
			return err
		}
		t, err = cutlass.Inspect(dir)
		return err
	})
	return t, err
}

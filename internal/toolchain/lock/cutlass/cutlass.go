// SPDX-License-Identifier: Apache-2.0

// Package cutlass knows the shape of a CUTLASS tree: which parts of an archive
// a build needs, what identifies them, and what version they claim to be.
package cutlass

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/sparsek/sparsek/internal/toolchain/unpack"
)

// Folders of a tree that a build needs, relative to its root.
const (
	Include = "include"
	Tools   = "tools/util/include"
)

// ErrDigest means that a tree is another one than it should be.
var ErrDigest = errors.New("not the pinned CUTLASS tree")

// Tree is what identifies a CUTLASS tree.
type Tree struct {
	Version string // as version.h claims, "4.3.0"
	Include string // digest of the folder Include, "h1:..."
	Tools   string // digest of the folder Tools
}

// Unpack puts the folders Include and Tools of the tree at prefix (it ends in
// "/") in an archive under root. kind is a file name that shows what sort of
// archive it is.
func Unpack(ctx context.Context, archive, kind, prefix string, root *os.Root) error {
	return unpack.File(ctx, archive, kind, root, unpack.Options{
		Select: func(name string) (string, bool) {
			rest, ok := strings.CutPrefix(name, prefix)
			return rest, ok && (within(rest, Include) || within(rest, Tools))
		},
	})
}

func within(name, dir string) bool {
	return strings.HasPrefix(name, dir+"/")
}

// Inspect reads the tree at dir.
func Inspect(dir string) (Tree, error) {
	var t Tree
	var err error
	if t.Include, err = digest(filepath.Join(dir, Include)); err != nil {
		return Tree{}, err
	}
	if t.Tools, err = digest(filepath.Join(dir, filepath.FromSlash(Tools))); err != nil {
		return Tree{}, err
	}
	if t.Version, err = readVersion(filepath.Join(dir, Include, "cutlass", "version.h")); err != nil {
		return Tree{}, err
	}
	return t, nil
}

func digest(dir string) (string, error) {
	h, err := dirhash.HashDir(dir, "", dirhash.Hash1)
	if err != nil {
		return "", fmt.Errorf("CUTLASS tree: %w", err)
	}
	return h, nil
}

// Verify checks the tree at dir against want. The error is ErrDigest if it is
// another tree, and says so if that claims the version that was wanted.
func Verify(dir string, want Tree) error {
	got, err := Inspect(dir)
	switch {
	case err != nil:
		return err
	case got == want:
		return nil
	case got.Include != want.Include && got.Version == want.Version:
		return fmt.Errorf("%w: its version.h claims %s, but include has the digest %s and not %s", ErrDigest, got.Version, got.Include, want.Include)
	case got.Include != want.Include:
		return fmt.Errorf("%w: its version.h says %s and not %s; include has the digest %s and not %s", ErrDigest, got.Version, want.Version, got.Include, want.Include)
	case got.Tools != want.Tools:
		return fmt.Errorf("%w: %s has the digest %s and not %s", ErrDigest, Tools, got.Tools, want.Tools)
	}
	return fmt.Errorf("%w: the lock says version %s, the version.h of the pinned tree %s; fix the lock", ErrDigest, want.Version, got.Version)
}

var versionParts = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+CUTLASS_(MAJOR|MINOR|PATCH)[ \t]+(\d+)\b`)

// readVersion reads what version.h claims.
func readVersion(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("CUTLASS tree: %w", err)
	}
	parts := map[string]string{}
	for _, m := range versionParts.FindAllStringSubmatch(string(text), -1) {
		parts[m[1]] = m[2]
	}
	if len(parts) != 3 {
		return "", fmt.Errorf("CUTLASS tree: %s does not define CUTLASS_MAJOR, _MINOR and _PATCH", file)
	}
	return parts["MAJOR"] + "." + parts["MINOR"] + "." + parts["PATCH"], nil
}

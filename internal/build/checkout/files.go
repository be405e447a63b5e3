// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"
)

// buildDir is what a build makes in a checkout; it holds no sources.
const buildDir = "build"

// Files lists the sources of the checkout at root, as they are in it now:
// what git tracks and, below what is built from, what is new and not ignored.
// In a copy without a repository that is every file outside build. The names
// are relative, with slashes, sorted.
func Files(ctx context.Context, root string) ([]string, error) {
	var names []string
	var err error
	if isRepository(ctx, root) {
		names, err = gitFiles(ctx, root)
	} else if err = ctx.Err(); err == nil {
		names, err = walk(root, ".")
	}
	if err != nil {
		return nil, fmt.Errorf("listing the sources: %w", err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func gitFiles(ctx context.Context, root string) ([]string, error) {
	var names []string
	for _, args := range [][]string{
		{"ls-files", "-z"},
		append([]string{"ls-files", "-z", "--others", "--exclude-standard", "--"}, builtFrom...),
	} {
		list, err := git(ctx, root, args...)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(list, "\x00") {
			// What was removed and not yet committed is still listed.
			if _, err := os.Lstat(filepath.Join(root, name)); name != "" && err == nil {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// walk lists the files below dir, which is relative to root. A dir that is a
// file stands for itself; one that is not there has none.
func walk(root, dir string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(root), dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == dir:
			return nil
		case err != nil:
			return err
		case entry.IsDir() && (name == buildDir || name == ".git"):
			return fs.SkipDir
		case !entry.IsDir() && name != recordFile:
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// digest is the Hash1 of what is built from at root.
func digest(root string) (string, error) {
	var names []string
	for _, part := range builtFrom {
		below, err := walk(root, part)
		if err != nil {
			return "", err
		}
		names = append(names, below...)
	}
	return dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(root, name)) })
}

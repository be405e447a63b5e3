// SPDX-License-Identifier: Apache-2.0

package blessed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// Library is a blessed library.
type Library struct {
	SHA256 string `json:"library_sha256"`
	Commit string `json:"commit"` // from which it was built, without changes
}

// Libraries are those that the baselines of the checkout at root were measured with, each once.
func Libraries(root string) ([]Library, error) {
	records, err := filepath.Glob(filepath.Join(root, "ci", "baseline", "*", "baseline.json"))
	if err != nil {
		return nil, err
	}
	var list []Library
	for _, file := range records {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a baseline: %w", err)
		}
		var l Library
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if l.SHA256 == "" || l.Commit == "" {
			return nil, fmt.Errorf("%s names no library", file)
		}
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list, nil
}

// ErrOther means that a build of the blessed commit gave another library than the blessed one, wrapped.
var ErrOther = errors.New("a build of the blessed commit gives another library")

// MakeOptions say where a library comes from.
type MakeOptions struct {
	Root  string // of the checkout, a git repository with the commit in it
	Build string // folder of libraries that it is to be in
	Cache string // folder of libraries that are kept for all checkouts
	// nothing is fetched
	Offline bool
	Log     io.Writer
}

// Make has the library in o.Build: as it is, out of the cache, or built. The build is that of the commit itself, in a
// folder of its own, by the build tool as it was then, and with the toolchain that it pinned: `mage kernel` gives the same
// bytes in every folder. The host compiler must be the same, too.
func Make(ctx context.Context, l Library, o MakeOptions) error {
	if _, err := Find(l.SHA256, o.Build); !errors.Is(err, ErrMissing) {
		return err
	}
	kept, err := Find(l.SHA256, o.Cache)
	if errors.Is(err, ErrMissing) {
		if err = build(ctx, l, o); err != nil {
			return err
		}
		kept, err = Find(l.SHA256, o.Cache)
	}
	if err != nil {
		return err
	}
	_, err = Keep(o.Build, kept)
	return err
}

// build builds the library and keeps it in the cache.
func build(ctx context.Context, l Library, o MakeOptions) (err error) {
	dir, err := os.MkdirTemp("", "sparsek-blessed-")
	if err != nil {
		return fmt.Errorf("building the blessed library: %w", err)
	}
	defer os.RemoveAll(dir)
	run := func(in string, args ...string) error {
		return process.Command{Args: args, Dir: in, Stdout: o.Log, Stderr: o.Log}.Run(ctx)
	}
	tree := filepath.Join(dir, "tree")
	if err := run(o.Root, "git", "worktree", "add", "--quiet", "--detach", tree, l.Commit); err != nil {
		return fmt.Errorf("building the blessed library: checking out commit %s, which a shallow clone may lack: %w", l.Commit, err)
	}
	defer func() {
		err = errors.Join(err, run(o.Root, "git", "worktree", "remove", "--force", tree))
	}()
	command := []string{"go", "tool", "mage", "kernel"}
	if o.Offline {
		command = append(command, "-offline")
	}
	if err := run(tree, command...); err != nil {
		return fmt.Errorf("building the blessed library of commit %s: %w", l.Commit, err)
	}
	made := filepath.Join(tree, "build", "lib", "libsparsek.so")
	hash, err := Keep(filepath.Join(dir, Folder), made)
	if err != nil {
		return err
	}
	if hash != l.SHA256 {
		return fmt.Errorf("%w: sha256 %s from commit %s, %s was blessed; is the host compiler another one? Copy the blessed library to %s",
			ErrOther, hash, l.Commit, l.SHA256, Place(o.Build, l.SHA256))
	}
	_, err = Keep(o.Cache, made)
	return err
}

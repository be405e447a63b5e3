// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// builtFrom is what of the tree goes into a build.
var builtFrom = []string{"cutlass_ext", "collective", "cmd", "wrapper", "internal", "go.mod", "go.sum",
	"magefile.go", "toolchain.lock.json"}

// dirty stands behind a commit where what is built from is not as it was
// committed.
const dirty = "-dirty"

// recordFile states, in a copy made by Export, what it is a copy of.
const recordFile = ".source.json"

// record is the content of recordFile.
type record struct {
	Commit string `json:"commit"`
	// Digest is that of what is built from, so that a copy that was changed
	// does not pass for the commit.
	Digest string `json:"digest"`
}

// Commit is the commit checked out at root, "-dirty" behind it where what is
// built from was changed since. A copy made by Export states it too. It is
// empty where it is not known: no git, no repository, no commit yet, or a
// repository around root that is another project's.
func Commit(ctx context.Context, root string) (string, error) {
	if !isRepository(ctx, root) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return recorded(root)
	}
	commit, err := git(ctx, root, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return "", ctx.Err()
	}
	changes, err := git(ctx, root, append([]string{"status", "--porcelain", "--"}, builtFrom...)...)
	if err != nil {
		return "", ctx.Err()
	}
	if changes != "" {
		commit += dirty
	}
	return commit, nil
}

// recorded is what a copy says of itself: nothing where root is none.
func recorded(root string) (commit string, err error) {
	text, err := os.ReadFile(filepath.Join(root, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	var now string
	if err == nil {
		now, err = digest(root)
	}
	if err != nil {
		return "", fmt.Errorf("finding out which commit the sources are: %s: %w", recordFile, err)
	}
	if now != r.Digest && r.Commit != "" && !strings.HasSuffix(r.Commit, dirty) {
		r.Commit += dirty
	}
	return r.Commit, nil
}

// isRepository says whether root is the top of a repository's work tree.
func isRepository(ctx context.Context, root string) bool {
	prefix, err := git(ctx, root, "rev-parse", "--show-prefix")
	return err == nil && prefix == ""
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := process.Command{Args: append([]string{"git", "-C", root}, args...)}.Output(ctx)
	return strings.TrimSpace(out), err
}

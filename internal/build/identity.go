// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/sparsek/sparsek/internal/process"
)

// compilerVersion is what the host compiler says that it is.
func compilerVersion(ctx context.Context, cxx string, env []string) (string, error) {
	if _, err := exec.LookPath(cxx); err != nil {
		return "", fmt.Errorf("no host compiler: %w; install g++ or name one with CXX", err)
	}
	version, err := process.Command{Args: []string{cxx, "--version"}, Env: env}.Output(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the host compiler for its version: %w", err)
	}
	return version, nil
}

// builtFrom is what of the tree goes into a build.
var builtFrom = []string{"cutlass_ext", "collective", "cmd", "wrapper", "internal", "go.mod", "go.sum",
	"magefile.go", "toolchain.lock.json"}

// sourceCommit is the commit checked out at root, "-dirty" behind it where
// what is built from was changed since. It is empty where git does not know:
// no git, no repository, no commit yet, or a repository around root that is
// another project's.
func sourceCommit(ctx context.Context, root string) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := process.Command{Args: append([]string{"git", "-C", root}, args...)}.Output(ctx)
		return strings.TrimSpace(out), err
	}
	if prefix, err := git("rev-parse", "--show-prefix"); err != nil || prefix != "" {
		return "", ctx.Err()
	}
	commit, err := git("rev-parse", "--verify", "HEAD")
	if err != nil {
		return "", ctx.Err()
	}
	changes, err := git(append([]string{"status", "--porcelain", "--"}, builtFrom...)...)
	if err != nil {
		return "", ctx.Err()
	}
	if changes != "" {
		commit += "-dirty"
	}
	return commit, nil
}

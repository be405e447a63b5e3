// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// hostTools are the versions that the host's tools report.
type hostTools struct {
	compiler string
	linker   string
}

// askHostTools asks the host compiler and the linker that it runs for their
// versions.
func askHostTools(ctx context.Context, cxx string, env []string) (hostTools, error) {
	if _, err := exec.LookPath(cxx); err != nil {
		return hostTools{}, fmt.Errorf("no host compiler: %w; install g++ or name one with CXX", err)
	}
	ask := func(what, option string) (string, error) {
		answer, err := process.Command{Args: []string{cxx, option}, Env: env}.Output(ctx)
		if err != nil {
			return "", fmt.Errorf("asking the %s for its version: %w", what, err)
		}
		first, _, _ := strings.Cut(answer, "\n")
		return first, nil
	}
	compiler, err := ask("host compiler", "--version")
	if err != nil {
		return hostTools{}, err
	}
	linker, err := ask("linker", "-Wl,--version")
	return hostTools{compiler, linker}, err
}

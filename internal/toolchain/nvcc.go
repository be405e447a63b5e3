// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// nvccTimeout bounds the one question that nvcc is asked here.
const nvccTimeout = 30 * time.Second

var nvccVersion = regexp.MustCompile(`(?m)^Cuda compilation tools, release \S+, V(\S+)$`)

// checkTools asks nvcc for its version, which shows that it runs at all and
// that it is the one of the lock.
func checkTools(ctx context.Context, dir string, l *lock.Lock) error {
	nvcc := filepath.Join(dir, cudaDir, "bin", "nvcc")
	ctx, cancel := context.WithTimeout(ctx, nvccTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, nvcc, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("%s does not run: %w; it needs Linux on x86_64, and a cache folder on a disk that lets programs run (%s moves it)", nvcc, err, fetch.CacheVariable)
	}
	m := nvccVersion.FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("%s --version says %q, which names no version", nvcc, out)
	}
	if got := string(m[1]); got != l.CUDA.Version {
		return fmt.Errorf("%s says it is %s and the lock says %s; update the lock with go tool mage lockUpdate", nvcc, got, l.CUDA.Version)
	}
	return nil
}

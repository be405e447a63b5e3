// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/sparsek/sparsek/internal/sys/term"
)

const lockFile = "build/.lock"

// lock makes this process the only one that changes build/ in the checkout
// until unlock is called. It says so where it has to wait.
func lock(ctx context.Context, root string, progress *term.Reporter) (unlock func(), err error) {
	path := filepath.Join(root, lockFile)
	for {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return nil, fmt.Errorf("making the build folder: %w", err)
		}
		l := flock.New(path)
		held, err := l.TryLock()
		if err == nil && !held {
			progress.Printf("waiting for another build in this checkout")
			_, err = l.TryLockContext(ctx, 50*time.Millisecond)
		}
		if err != nil {
			return nil, fmt.Errorf("locking the build folder with %s: %w", lockFile, err)
		}
		// Clean removes the file: what was locked must still be what is there.
		ours, err := l.Stat()
		if err == nil {
			var there os.FileInfo
			if there, err = os.Stat(path); err == nil && os.SameFile(ours, there) {
				return func() { _ = l.Unlock() }, nil
			}
		}
		if err := l.Unlock(); err != nil {
			return nil, fmt.Errorf("unlocking %s: %w", lockFile, err)
		}
	}
}

// Clean removes build/ and nothing else. It waits for a build that runs.
func Clean(ctx context.Context, root string, progress *term.Reporter) error {
	if _, err := os.Lstat(filepath.Join(root, buildDir)); os.IsNotExist(err) {
		return nil
	}
	unlock, err := lock(ctx, root, progress)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.RemoveAll(filepath.Join(root, buildDir)); err != nil {
		return fmt.Errorf("cleaning: %w", err)
	}
	return nil
}

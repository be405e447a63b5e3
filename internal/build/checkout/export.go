// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Export copies the sources of the checkout at root into the folder dst, which
// it makes, and leaves a record of the commit there. Files come out with mode
// 0755 where they run and 0644 otherwise. It returns what Commit says.
func Export(ctx context.Context, root, dst string) (commit string, err error) {
	if commit, err = Commit(ctx, root); err != nil {
		return "", err
	}
	names, err := Files(ctx, root)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if err := copyFile(filepath.Join(root, name), filepath.Join(dst, name)); err != nil {
			return "", fmt.Errorf("copying the sources: %w", err)
		}
	}
	sum, err := digest(dst)
	if err != nil {
		return "", fmt.Errorf("copying the sources: %w", err)
	}
	text, err := json.MarshalIndent(record{commit, sum}, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dst, recordFile), append(text, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("copying the sources: %w", err)
	}
	return commit, nil
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file (%s): sources are", from, info.Mode().Type())
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to, text, mode); err != nil {
		return err
	}
	return os.Chmod(to, mode) // whatever the umask
}

// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// TryLock takes the lock called key if it is neither held nor shared.
func (c *Cache) TryLock(key string) (unlock func(), ok bool, err error) {
	dir, err := c.makeDir("lock")
	if err != nil {
		return nil, false, err
	}
	l := flock.New(filepath.Join(dir, key+".lock"), flock.SetPermissions(0o644))
	ok, err = l.TryLock()
	if err != nil {
		return nil, false, c.diskError(fmt.Errorf("lock %s: %w", key, err))
	}
	return func() { _ = l.Close() }, ok, nil
}

// Share takes the lock called key as a shared lock, which excludes exclusive
// holders. It waits for an exclusive holder, who must not keep it long. In a
// cache that cannot be written nothing can be removed, so no lock is needed
// there and none is taken.
func (c *Cache) Share(key string) (release func(), err error) {
	dir, err := c.makeDir("lock")
	if readOnly(err) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(dir, key+".lock"), flock.SetPermissions(0o644))
	switch err := l.RLock(); {
	case readOnly(err):
		return func() {}, nil
	case err != nil:
		return nil, c.diskError(fmt.Errorf("lock %s: %w", key, err))
	}
	return func() { _ = l.Close() }, nil
}

func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

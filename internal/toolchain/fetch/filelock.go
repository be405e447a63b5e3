// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is the interval between attempts to take a lock that another
// process holds.
const lockPoll = 100 * time.Millisecond

// Lock takes the lock called key, a plain file name, and waits for it while
// another goroutine or process has it; what names the work, for the message
// of those who wait. The system frees the lock when its holder ends, however
// it ends.
func (c *Cache) Lock(ctx context.Context, key, what string) (unlock func(), err error) {
	dir, err := c.makeDir("lock")
	if err != nil {
		return nil, err
	}
	// The lock file stays: removing it would allow two holders, one of the old
	// file and one of a new file.
	l := flock.New(filepath.Join(dir, key+".lock"))
	ok, err := l.TryLock()
	if err == nil && !ok {
		c.opts.Progress.Printf("%s: waiting for another process that fetches it", what)
		_, err = l.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, c.diskError(fmt.Errorf("lock %s: %w", key, err))
	}
	return func() { _ = l.Close() }, nil
}

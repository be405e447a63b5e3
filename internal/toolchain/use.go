// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"fmt"
	"os"
)

// Use keeps the tree from being pruned until release is called. A toolchain
// that is not in a cache needs no keeping.
func (t *Toolchain) Use() (release func(), err error) {
	if t.cache == nil {
		return func() {}, nil
	}
	release, err = t.cache.Share(useKey(t.Digest))
	if err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	if _, err := os.Stat(t.NVCC); err != nil {
		release()
		return nil, fmt.Errorf("toolchain: removed since it was checked, by a pruning perhaps: %w; start again", err)
	}
	return release, nil
}

// The names of a tree's locks: to make or replace it, and to use it.
func treeKey(digest string) string { return "tree-" + digest }
func useKey(digest string) string  { return "use-" + digest }

// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"io/fs"
	"runtime"

	"github.com/sparsek/sparsek/internal/sys/procfs"
)

// Limits is what jobs may take of the machine together.
type Limits struct {
	Cores  int
	Memory int64 // bytes
}

// Machine returns the cores that this process may use (affinity and cgroup
// quota counted in) and the memory that is free for it now. root is the file
// system's root: os.DirFS("/").
func Machine(root fs.FS) Limits {
	return Limits{Cores: runtime.GOMAXPROCS(0), Memory: procfs.AvailableMemory(root)}
}

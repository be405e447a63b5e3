// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Limits is what jobs may take of the machine together.
type Limits struct {
	Cores  int
	Memory int64 // bytes
}

// Machine returns the cores that this process may use (affinity and cgroup
// quota counted in) and the memory that is free for it now: what the kernel
// calls available, or what the tightest cgroup around the process leaves if
// that is less. root is the file system's root: os.DirFS("/").
func Machine(root fs.FS) Limits {
	memory := int64(math.MaxInt64)
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		if kib, ok := field(text, "MemAvailable:"); ok {
			memory = kib * 1024
		}
	}
	if text, err := fs.ReadFile(root, "proc/self/cgroup"); err == nil {
		memory = min(memory, cgroupFree(root, text))
	}
	return Limits{Cores: runtime.GOMAXPROCS(0), Memory: memory}
}

// cgroupFree returns the least that any cgroup leaves, given the text of
// /proc/self/cgroup with lines "id:controllers:path"; version 2 has id 0 and
// no controllers. Inside a container the path may be seen from outside it;
// then only the mount's own top counts.
func cgroupFree(root fs.FS, membership []byte) int64 {
	free := int64(math.MaxInt64)
	for line := range strings.Lines(string(membership)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, limit, usage, cache := "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		if parts[0] != "0" || parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, limit, usage = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
			cache = "total_inactive_file"
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			at := path.Join(mount, dir)
			if most, ok := number(root, path.Join(at, limit)); ok {
				used, _ := number(root, path.Join(at, usage))
				stat, _ := fs.ReadFile(root, path.Join(at, "memory.stat"))
				cached, _ := field(stat, cache)
				free = min(free, max(0, most-max(0, used-cached)))
			}
			if dir == "/" {
				break
			}
		}
	}
	return free
}

// number reads a file with one number in it; "max" is none.
func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// field finds the number behind a name at the beginning of a line.
func field(text []byte, name string) (int64, bool) {
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

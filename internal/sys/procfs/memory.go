// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// AvailableMemory returns the bytes that this process can take without
// swapping: what the kernel calls available, or what the tightest cgroup
// around the process leaves if that is less; files that are only cached do not
// count as used. math.MaxInt64 where neither is known. root is the file
// system's root: os.DirFS("/").
func AvailableMemory(root fs.FS) int64 {
	available := int64(math.MaxInt64)
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		if kib, ok := number(Field(string(text), "MemAvailable:")); ok {
			available = kib * 1024
		}
	}
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		membership = []byte("0::/\n") // the group that is mounted
	}
	return min(available, cgroupFree(root, string(membership)))
}

// cgroupFree returns the least that any cgroup leaves, given the text of
// /proc/self/cgroup with lines "id:controllers:path"; version 2 has id 0 and
// no controllers. Inside a container the path may be seen from outside it;
// then only the mount's own top counts.
func cgroupFree(root fs.FS, membership string) int64 {
	free := int64(math.MaxInt64)
	for line := range strings.Lines(membership) {
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
			if most, ok := numberIn(root, path.Join(at, limit)); ok {
				used, _ := numberIn(root, path.Join(at, usage))
				stat, _ := fs.ReadFile(root, path.Join(at, "memory.stat"))
				cached, _ := number(Field(string(stat), cache))
				free = min(free, max(0, most-max(0, used-cached)))
			}
			if dir == "/" {
				break
			}
		}
	}
	return free
}

// numberIn reads a file with one number in it; "max" is none.
func numberIn(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	return number(strings.TrimSpace(string(text)), err == nil)
}

func number(text string, ok bool) (int64, bool) {
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

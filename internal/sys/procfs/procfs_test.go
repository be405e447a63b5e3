// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:  100 kB\nMemAvailable:  50 kB\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"nothing known": {fstest.MapFS{}, math.MaxInt64},
		"no cgroup":     {fstest.MapFS{"proc/meminfo": file(meminfo)}, 50 * 1024},
		"version 2, a parent is tighter": {fstest.MapFS{
			"proc/meminfo":                   file(meminfo),
			"proc/self/cgroup":               file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max":   file("max\n"),
			"sys/fs/cgroup/a/memory.max":     file("30000\n"),
			"sys/fs/cgroup/a/memory.current": file("20000\n"),
			"sys/fs/cgroup/a/memory.stat":    file("anon 1\ninactive_file 15000\n"),
		}, 25000},
		"version 2, the group's path is not known": {fstest.MapFS{
			"sys/fs/cgroup/memory.max":     file("1000\n"),
			"sys/fs/cgroup/memory.current": file("700\n"),
			"sys/fs/cgroup/memory.stat":    file("anon 500\ninactive_file 200\n"),
		}, 500},
		"version 2, more cached than used": {fstest.MapFS{
			"sys/fs/cgroup/memory.max":     file("1000\n"),
			"sys/fs/cgroup/memory.current": file("100\n"),
			"sys/fs/cgroup/memory.stat":    file("inactive_file 200\n"),
		}, 1000},
		"version 2, no limit": {fstest.MapFS{
			"sys/fs/cgroup/memory.max":     file("max\n"),
			"sys/fs/cgroup/memory.current": file("700\n"),
		}, math.MaxInt64},
		"version 2, seen from outside": {fstest.MapFS{
			"proc/self/cgroup":             file("0::/../x\n"),
			"sys/fs/cgroup/memory.max":     file("1000\n"),
			"sys/fs/cgroup/memory.current": file("5000\n"),
		}, 0},
		"version 1": {fstest.MapFS{
			"proc/meminfo":     file(meminfo),
			"proc/self/cgroup": file("5:cpu:/c\n4:memory:/c\n"),
			"sys/fs/cgroup/memory/c/memory.limit_in_bytes": file("9000"),
			"sys/fs/cgroup/memory/c/memory.usage_in_bytes": file("1000"),
		}, 8000},
	} {
		if got := AvailableMemory(c.files); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

func TestField(t *testing.T) {
	const text = "Name:\n  other 1\nNamed: 2\nName: 3 kB\nName: 4\n"
	if got, ok := Field(text, "Name:"); got != "3" || !ok {
		t.Errorf("%q, %t", got, ok)
	}
	if got, ok := Field(text, "Nam"); ok {
		t.Errorf("found %q", got)
	}
}

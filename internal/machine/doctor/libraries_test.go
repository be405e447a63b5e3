// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestLibraryFile(t *testing.T) {
	root := fstest.MapFS{"a/libcublas.so.13": {}, "a/libcublas.so.12": {}, "python/nvidia/cublas/lib/libcublas.so.12": {},
		"python/nvidia/cusparse/lib/libcusparse.so.12": {}, "new/nvidia/cu13/lib/libcusparse.so.12": {}, "empty/x": {}}
	for _, c := range []struct {
		library     runtimeLibrary
		given, want string
	}{
		{cublas, "/a/libcublas.so.12", "/a/libcublas.so.12"},
		{cublas, "/a", "/a/libcublas.so.13"},
		{cublas, "/python/nvidia", "/python/nvidia/cublas/lib/libcublas.so.12"},
		{cusparse, "/python/nvidia", "/python/nvidia/cusparse/lib/libcusparse.so.12"},
		{cusparse, "/new/nvidia", "/new/nvidia/cu13/lib/libcusparse.so.12"},
	} {
		if got, err := c.library.find(root, c.given); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.given, got, err, c.want)
		}
	}
	for _, library := range []runtimeLibrary{cublas, cusparse} {
		for _, given := range []string{"/empty", "/nowhere"} {
			if got, err := library.find(root, given); err == nil || !strings.Contains(err.Error(), library.variable) {
				t.Errorf("%s: %q, %v, want %s named", given, got, err, library.variable)
			}
		}
	}
}

// A file that is there and is no library is reported, not passed over.
func TestLibraryThatCannotBeOpened(t *testing.T) {
	root := fstest.MapFS{"a/libcusparse.so.12": {}}
	if got := cusparse.open(root, "/a"); got.Err == nil {
		t.Errorf("opened %q, which is not there", got.File)
	}
}

// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCUBLASFile(t *testing.T) {
	root := fstest.MapFS{"a/libcublas.so.13": {}, "a/libcublas.so.12": {}, "python/nvidia/cublas/lib/libcublas.so.12": {}, "empty/x": {}}
	for given, want := range map[string]string{
		"/a/libcublas.so.12": "/a/libcublas.so.12",
		"/a":                 "/a/libcublas.so.13",
		"/python/nvidia":     "/python/nvidia/cublas/lib/libcublas.so.12",
	} {
		if got, err := cublasFile(root, given); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"/empty", "/nowhere"} {
		if got, err := cublasFile(root, given); err == nil || !strings.Contains(err.Error(), CUBLASVariable) {
			t.Errorf("%s: %q, %v, want the variable named", given, got, err)
		}
	}
}

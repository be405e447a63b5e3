// SPDX-License-Identifier: Apache-2.0

package native

import (
	"os"
	"path/filepath"
	"testing"
)

// A library is loaded once, however often it is opened.
func TestOpenTwice(t *testing.T) {
	path := os.Getenv("SPARSEK_LIBRARY")
	if path == "" {
		path = filepath.Join("..", "..", "..", "build", "lib", "libsparsek.so")
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		t.Skip("skipped: libsparsek.so not found")
	}
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if first.api != again.api {
		t.Error("the library was loaded twice")
	}
}

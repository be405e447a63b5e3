// SPDX-License-Identifier: Apache-2.0

package blessed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/gate/ncu"
)

// Folder is the name of the folder, in build/ and in the cache, that has blessed libraries: <sha256>/libsparsek.so.
const Folder = "blessed"

// ErrMissing means that a library is in none of the folders, wrapped.
var ErrMissing = errors.New("the blessed library is not here")

// Place is where the library with that hash lies in a folder of libraries.
func Place(folder, sha256 string) string { return filepath.Join(folder, sha256, "libsparsek.so") }

// Find looks for the library with that hash in folders, in their order. A file with another content is an error: nothing
// is compared with a library that was not blessed.
func Find(sha256 string, folders ...string) (file string, err error) {
	for _, folder := range folders {
		file := Place(folder, sha256)
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading the blessed library: %w", err)
		}
		if hash := ncu.Hash(text); hash != sha256 {
			return "", fmt.Errorf("%s was changed: its sha256 is %s; remove the file", file, hash)
		}
		return file, nil
	}
	return "", fmt.Errorf("%w: there is no %s in %q", ErrMissing, Place(".", sha256), folders)
}

// Keep copies a library into a folder of libraries, under its hash, which it gives.
func Keep(folder, library string) (sha256 string, err error) {
	text, err := os.ReadFile(library)
	if err != nil {
		return "", fmt.Errorf("keeping a library: %w", err)
	}
	sha256 = ncu.Hash(text)
	file := Place(folder, sha256)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return "", fmt.Errorf("keeping a library: %w", err)
	}
	if err := renameio.WriteFile(file, text, 0o755); err != nil {
		return "", fmt.Errorf("keeping a library: %w", err)
	}
	return sha256, nil
}

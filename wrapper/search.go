// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

const (
	libraryName = "libsparsek.so"
	libraryEnv  = "SPARSEK_LIBRARY"
)

// ErrLibraryNotFound is what [Open] and [Default] return, wrapped, where no library is in any of the places searched.
var ErrLibraryNotFound = errors.New(libraryName + " not found")

// A NotFoundError lists where the library was looked for. errors.Is finds [ErrLibraryNotFound] in it.
type NotFoundError struct {
	Tried []string // files, in order; the last may be a bare name, which the loader searched for
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("sparsek: %s not found: build it, or set %s to the file or its folder; tried:\n\t%s",
		libraryName, libraryEnv, strings.Join(e.Tried, "\n\t"))
}

func (e *NotFoundError) Unwrap() error { return ErrLibraryNotFound }

// Open loads libsparsek and checks that it has the ABI this package was compiled for.
//
// Each path is a file, or a folder that holds libsparsek.so; the first that exists is taken. Without a path, the
// search list is:
//
//  1. the environment variable SPARSEK_LIBRARY, a file or a folder; where it is set nothing else is tried
//  2. ../lib/libsparsek.so and ./libsparsek.so, seen from the executable's folder (symbolic links followed)
//  3. build/lib/libsparsek.so in the working directory or above it, up to the first folder with a go.mod; where
//     there is no such folder, not at all
//  4. /usr/local/lib, /usr/local/lib64, /usr/lib64, /usr/lib
//  5. the dynamic loader's own list (LD_LIBRARY_PATH, the loader's cache)
//
// A file that exists and cannot be loaded ends the search with an error. Where no file exists the error is a
// [*NotFoundError]. The library stays loaded for the life of the process; opening it twice is cheap.
func Open(paths ...string) (*Library, error) {
	if len(paths) > 0 {
		return openFirst(paths, false)
	}
	if path := os.Getenv(libraryEnv); path != "" {
		lib, err := openFirst([]string{path}, false)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", libraryEnv, path, err)
		}
		return lib, nil
	}
	return openFirst(searchList(), true)
}

// Default is the library that [Open] finds by its search list, loaded once for the process.
func Default() (*Library, error) { return defaultLibrary() }

var defaultLibrary = sync.OnceValues(func() (*Library, error) { return Open() })

func openFirst(paths []string, askLoader bool) (*Library, error) {
	var tried []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			path = filepath.Join(path, libraryName)
			_, err = os.Stat(path)
		}
		tried = append(tried, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sparsek: look for the library: %w", err)
		}
		// Made absolute: a name without a slash would be searched for elsewhere.
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("sparsek: open %s: %w", path, err)
		}
		lib, err := openLibrary(absolute)
		if err != nil {
			return nil, fmt.Errorf("sparsek: open %s: %w", path, err)
		}
		return lib, nil
	}
	if askLoader {
		lib, err := openLibrary(libraryName)
		if err == nil {
			return lib, nil
		}
		tried = append(tried, fmt.Sprintf("%s (the loader says: %v)", libraryName, err))
	}
	return nil, &NotFoundError{Tried: tried}
}

func openLibrary(name string) (*Library, error) {
	lib, err := native.Open(name)
	if err != nil {
		return nil, err
	}
	return &Library{native: lib}, nil
}

func searchList() []string {
	var list []string
	if executable, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(executable); err == nil {
			executable = real
		}
		folder := filepath.Dir(executable)
		list = append(list, filepath.Join(folder, "..", "lib", libraryName), filepath.Join(folder, libraryName))
	}
	if folder, err := os.Getwd(); err == nil {
		list = append(list, buildFolders(folder)...)
	}
	for _, folder := range []string{"/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/usr/lib"} {
		list = append(list, filepath.Join(folder, libraryName))
	}
	return list
}

// buildFolders lists build/lib/libsparsek.so from folder up to the first one with a go.mod. Outside of a module there
// is none: a library must not be picked up from wherever a program happens to be started.
func buildFolders(folder string) []string {
	var list []string
	for {
		list = append(list, filepath.Join(folder, "build", "lib", libraryName))
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return list
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return nil
		}
		folder = parent
	}
}

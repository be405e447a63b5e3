// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/machine/gpu"
)

// runtimeLibrary is a library that libsparsek opens at run time, with the places where it is searched for.
type runtimeLibrary struct {
	variable string // of the environment; names the library, its folder, or the folder nvidia of Python's packages
	file     string // without a version
	symbol   string
	folder   string // below Python's nvidia, of the packages up to CUDA 12
	// What it needs, which is beside it but not always where the loader looks, and a symbol of that.
	beside, besideSymbol string
}

var (
	cublas = runtimeLibrary{"SPARSEK_CUBLAS", "libcublas.so", "cublasCreate_v2", "cublas/lib",
		"libcublasLt.so", "cublasLtCreate"}
	cusparse = runtimeLibrary{"SPARSEK_CUSPARSE", "libcusparse.so", "cusparseCreate", "cusparse/lib",
		"libnvJitLink.so", "nvJitLinkVersion"}
)

// libraryVersions are the versions that libsparsek tries too.
var libraryVersions = []string{".13", ".12", ""}

// versions are the names that a file may have.
func versions(file string) []string {
	var names []string
	for _, version := range libraryVersions {
		names = append(names, file+version)
	}
	return names
}

// open opens the library as libsparsek does: the one that the variable names, else the loader's.
func (l runtimeLibrary) open(root fs.FS, given string) Opened {
	if given == "" {
		file, err := gpu.Open(l.symbol, versions(l.file)...)
		return Opened{file, err}
	}
	file, err := l.find(root, given)
	if err != nil {
		return Opened{Err: err}
	}
	// Where this fails, opening the library itself reports it.
	_, _ = gpu.Open(l.besideSymbol, versions(filepath.Join(filepath.Dir(file), l.beside))...)
	file, err = gpu.Open(l.symbol, file)
	return Opened{file, err}
}

// find returns the file that the variable names.
func (l runtimeLibrary) find(root fs.FS, given string) (string, error) {
	at := func(path string) (fs.FileInfo, error) { return fs.Stat(root, strings.TrimPrefix(path, "/")) }
	given, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	info, err := at(given)
	if err != nil {
		return "", fmt.Errorf("%s: %w", l.variable, err)
	}
	if !info.IsDir() {
		return given, nil
	}
	for _, folder := range []string{"", "cu13/lib", l.folder} {
		for _, file := range versions(filepath.Join(given, folder, l.file)) {
			if info, err := at(file); err == nil && info.Mode().IsRegular() {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s names a folder without %s, also below cu13/lib and %s", l.variable, l.file, l.folder)
}

// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/gpu"
)

// CUBLASVariable names the environment variable that names cuBLAS: the library,
// its folder, or the folder nvidia of Python's packages.
const CUBLASVariable = "SPARSEK_CUBLAS"

// cublasVersions are those that are tried, as libsparsek does.
var cublasVersions = []string{".13", ".12", ""}

// openCUBLAS opens cuBLAS as libsparsek does: the one given, else the loader's.
func openCUBLAS(root fs.FS, given string) Opened {
	const symbol = "cublasCreate_v2"
	if given == "" {
		var names []string
		for _, version := range cublasVersions {
			names = append(names, "libcublas.so"+version)
		}
		file, err := gpu.Open(symbol, names...)
		return Opened{file, err}
	}
	file, err := cublasFile(root, given)
	if err != nil {
		return Opened{Err: err}
	}
	// cuBLAS needs cuBLASLt, which is beside it but not always where the loader
	// looks. Where it cannot be opened cuBLAS itself says so.
	_, _ = gpu.Open("cublasLtCreate", strings.Replace(file, "libcublas.so", "libcublasLt.so", 1))
	file, err = gpu.Open(symbol, file)
	return Opened{file, err}
}

// cublasFile finds the library that CUBLASVariable means.
func cublasFile(root fs.FS, given string) (string, error) {
	at := func(path string) (fs.FileInfo, error) { return fs.Stat(root, strings.TrimPrefix(path, "/")) }
	given, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	info, err := at(given)
	if err != nil {
		return "", fmt.Errorf("%s: %w", CUBLASVariable, err)
	}
	if !info.IsDir() {
		return given, nil
	}
	for _, folder := range []string{"", "cu13/lib", "cublas/lib"} {
		for _, version := range cublasVersions {
			file := filepath.Join(given, folder, "libcublas.so"+version)
			if info, err := at(file); err == nil && info.Mode().IsRegular() {
				return file, nil
			}
		}
	}
	return "", errors.New(CUBLASVariable + " names a folder without libcublas.so, also below cu13/lib and cublas/lib")
}

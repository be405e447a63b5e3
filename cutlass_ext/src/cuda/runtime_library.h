// SPDX-License-Identifier: Apache-2.0
// Libraries of NVIDIA's that are not linked but opened at run time, where there are any.
#pragma once

#include <string>

#include "abi/error.h"

namespace sparsek::cuda {

// How a library is called, and where it may lie.
struct LibraryFile {
  const char* title;     // "cuBLAS"
  const char* variable;  // of the environment; names the library's file, its folder, or Python's folder `nvidia`
  const char* file;      // "libcublas.so", without a version
  const char* beside;    // what it needs, which lies beside it but not always where the loader looks; "": nothing
  const char* folder;    // below Python's folder `nvidia`, of the packages up to CUDA 12: "cublas/lib"
};

// What came of opening a library.
struct OpenedLibrary {
  void* handle = nullptr;
  std::string why_not;  // empty where there is a handle
};

// Opens the one that the variable names, or where it is not set the one that the loader finds.
OpenedLibrary open_library(const LibraryFile& wanted);

// The library, opened by the first call and never closed. What came of that stays so for the process.
const OpenedLibrary& cublas_file();
const OpenedLibrary& cusparse_file();

// A function of an opened library; throws SPARSEK_NO_LIBRARY where it has none. `title` names the library.
void* find_function(const OpenedLibrary& library, const char* title, const char* name);

template <class Function>
void find_function(const OpenedLibrary& library, const char* title, const char* name, Function& function) {
  function = reinterpret_cast<Function>(find_function(library, title, name));
}

}  // namespace sparsek::cuda

// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries that are not linked but opened at run time.
#pragma once

#include <string>

#include "abi/error.h"

namespace sparsek::cuda {

// The names of a library, and where to search for it.
struct LibraryFile {
  const char* title;     // "cuBLAS"
  const char* variable;  // of the environment; names the library's file, its folder, or Python's folder `nvidia`
  const char* file;      // "libcublas.so", without a version
  const char* beside;    // a library in the same folder that it needs and that the loader may not find; "": none
  const char* folder;    // its folder below Python's folder `nvidia` in packages up to CUDA 12: "cublas/lib"
};

// The result of opening a library.
struct OpenedLibrary {
  void* handle = nullptr;
  std::string why_not;  // empty where there is a handle
};

// Opens the library that the variable names or, where it is not set, the one that the loader finds.
OpenedLibrary open_library(const LibraryFile& wanted);

// The library, opened by the first call and never closed. The result of that call is final for the process.
const OpenedLibrary& cublas_file();
const OpenedLibrary& cusparse_file();

// A function of an opened library; throws SPARSEK_NO_LIBRARY where the library lacks it. title: the library's name.
void* find_function(const OpenedLibrary& library, const char* title, const char* name);

template <class Function>
void find_function(const OpenedLibrary& library, const char* title, const char* name, Function& function) {
  function = reinterpret_cast<Function>(find_function(library, title, name));
}

}  // namespace sparsek::cuda

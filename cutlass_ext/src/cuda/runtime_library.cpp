// SPDX-License-Identifier: Apache-2.0
#include "cuda/runtime_library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>

namespace sparsek::cuda {
namespace {

// The newest first; the name without a number exists in installations for development.
constexpr const char* kVersions[] = {".13", ".12", ""};
// The folder, below `nvidia`, of all libraries in Python's packages for CUDA 13.
constexpr const char* kCommonFolder = "cu13/lib";

bool is_folder(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_file(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Adds the loader's message to why.
void* open(const std::string& name, std::string& why) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const message = dlerror();
    why += "; ";
    why += message == nullptr ? name : message;
  }
  return library;
}

void* open_with_beside(const LibraryFile& wanted, const std::string& file, std::string& why) {
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  if (*wanted.beside != '\0') {
    for (const char* const version : kVersions) {
      const std::string needed = folder + wanted.beside + version;
      if (is_file(needed) && open(needed, why) != nullptr) break;
    }
  }
  return open(file, why);
}

void* open_given(const LibraryFile& wanted, const std::string& given, std::string& why) {
  if (!is_folder(given)) return open_with_beside(wanted, given, why);
  for (const std::string folder : {"", kCommonFolder, wanted.folder}) {
    for (const char* const version : kVersions) {
      const std::string file = given + '/' + folder + '/' + wanted.file + version;
      if (is_file(file)) return open_with_beside(wanted, file, why);
    }
  }
  why += std::string("; no ") + wanted.file + " in it, nor in " + kCommonFolder + " or " + wanted.folder + " below it";
  return nullptr;
}

void* open_found(const LibraryFile& wanted, std::string& why) {
  for (const char* const version : kVersions) {
    if (void* const library = open(std::string(wanted.file) + version, why)) return library;
  }
  return nullptr;
}

}  // namespace

OpenedLibrary open_library(const LibraryFile& wanted) {
  const char* const given = std::getenv(wanted.variable);
  const bool is_given = given != nullptr && *given != '\0';
  std::string why;
  OpenedLibrary opened;
  opened.handle = is_given ? open_given(wanted, given, why) : open_found(wanted, why);
  if (opened.handle != nullptr) return opened;
  opened.why_not = is_given ? std::string(wanted.title) + ": " + wanted.variable + "=" + given + " cannot be opened"
                            : std::string(wanted.title) + " is not where the loader looks: set " + wanted.variable +
                                  " to its folder";
  opened.why_not += why;
  return opened;
}

const OpenedLibrary& cublas_file() {
  static const OpenedLibrary opened =
      open_library({"cuBLAS", "SPARSEK_CUBLAS", "libcublas.so", "libcublasLt.so", "cublas/lib"});
  return opened;
}

const OpenedLibrary& cusparse_file() {
  static const OpenedLibrary opened =
      open_library({"cuSPARSE", "SPARSEK_CUSPARSE", "libcusparse.so", "libnvJitLink.so", "cusparse/lib"});
  return opened;
}

void* find_function(const OpenedLibrary& library, const char* title, const char* name) {
  if (library.handle == nullptr) fail(SPARSEK_NO_LIBRARY, "%s", library.why_not.c_str());
  void* const function = dlsym(library.handle, name);
  if (function == nullptr) fail(SPARSEK_NO_LIBRARY, "the %s that was opened has no %s: it is too old", title, name);
  return function;
}

}  // namespace sparsek::cuda

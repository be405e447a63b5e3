// SPDX-License-Identifier: Apache-2.0
#include "cuda/cublas_library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "abi/error.h"

namespace sparsek::cuda {
namespace {

constexpr const char* kVariable = "SPARSEK_CUBLAS";
// The newest first; the one without a number is there where CUDA was installed to develop with.
constexpr const char* kVersions[] = {".13", ".12", ""};
// Where the folder given holds no cuBLAS itself: where Python's packages have it below `nvidia`.
constexpr const char* kFolders[] = {"/", "/cu13/lib/", "/cublas/lib/"};

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

// cuBLAS needs cuBLASLt, which is beside it, but not always where the loader looks.
void* open_beside_light(const std::string& file, std::string& why) {
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  for (const char* const version : kVersions) {
    const std::string light = folder + "libcublasLt.so" + version;
    if (is_file(light) && open(light, why) != nullptr) break;
  }
  return open(file, why);
}

void* open_given(const std::string& given, std::string& why) {
  if (!is_folder(given)) return open_beside_light(given, why);
  for (const char* const folder : kFolders) {
    for (const char* const version : kVersions) {
      const std::string file = given + folder + "libcublas.so" + version;
      if (is_file(file)) return open_beside_light(file, why);
    }
  }
  why += "; no libcublas.so in it, nor in cu13/lib or cublas/lib below it";
  return nullptr;
}

void* open_found(std::string& why) {
  for (const char* const version : kVersions) {
    if (void* const library = open(std::string("libcublas.so") + version, why)) return library;
  }
  return nullptr;
}

void* open_cublas() {
  const char* const given = std::getenv(kVariable);
  const bool is_given = given != nullptr && *given != '\0';
  std::string why;
  void* const library = is_given ? open_given(given, why) : open_found(why);
  if (library == nullptr && is_given) {
    fail(SPARSEK_NO_LIBRARY, "cuBLAS: %s=%s cannot be opened%s", kVariable, given, why.c_str());
  }
  if (library == nullptr) {
    fail(SPARSEK_NO_LIBRARY, "cuBLAS is not where the loader looks: set %s to its folder%s", kVariable, why.c_str());
  }
  return library;
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) fail(SPARSEK_NO_LIBRARY, "the cuBLAS that was opened has no %s: it is too old", name);
}

}  // namespace

CublasLibrary::CublasLibrary() {
  void* const library = open_cublas();
  find(library, "cublasCreate_v2", create);
  find(library, "cublasDestroy_v2", destroy);
  find(library, "cublasSetStream_v2", set_stream);
  find(library, "cublasSetWorkspace_v2", set_workspace);
  find(library, "cublasGemmEx", gemm);
}

const CublasLibrary& CublasLibrary::get() {
  static const CublasLibrary library;  // where the constructor throws, the next call tries again
  return library;
}

void CublasLibrary::check(int status, const char* call) const {
  if (status == kCublasSuccess) return;
  constexpr int kAllocationFailed = 3;
  if (status == kAllocationFailed) fail(SPARSEK_OUT_OF_MEMORY, "%s: out of device memory", call);
  fail(SPARSEK_CUDA_ERROR, "%s: cuBLAS's status is %d", call, status);
}

}  // namespace sparsek::cuda

/* SPDX-License-Identifier: Apache-2.0 */
#include "digest.h"

#include <dlfcn.h>
#include <stddef.h>

#include "sparsek.h"

uint64_t plan_digest(const char* path, const void* plan) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  sparsek_plan_info info = {.abi_size = sizeof(info)};
  const sparsek_status status = get_api(SPARSEK_ABI_VERSION)->plan_info(plan, &info);
  dlclose(library);
  return status == SPARSEK_OK ? info.digest : 0;
}

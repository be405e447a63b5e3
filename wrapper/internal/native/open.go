// SPDX-License-Identifier: Apache-2.0

package native

/*
#cgo linux LDFLAGS: -ldl
#cgo CFLAGS: -std=gnu11

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sparsek.h"

typedef struct opened {
	const sparsek_api *api;  // null where it failed
	char *path;              // of the file that was loaded; allocated
	char *message;           // why it failed; allocated
} opened;

// dlerror belongs to the OS thread, so all of it is one call.
static opened open_library(const char *name) {
	opened result = {NULL, NULL, NULL};
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		result.message = strdup(dlerror());
		return result;
	}
	const sparsek_api *(*get_api)(int32_t) = (const sparsek_api *(*)(int32_t))dlsym(library, "sparsek_get_api");
	if (get_api == NULL) {
		result.message = strdup("it exports no sparsek_get_api");
		dlclose(library);
		return result;
	}
	const sparsek_api *api = get_api(SPARSEK_ABI_VERSION);
	if (api == NULL || api->abi_size < sizeof(sparsek_api)) {
		result.message = strdup("its ABI is not the one that this program was compiled for");
		dlclose(library);
		return result;
	}
	Dl_info info;
	result.path = strdup(dladdr((void *)get_api, &info) != 0 ? info.dli_fname : name);
	result.api = api;
	return result;
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Open loads the library, for good: what it holds on to (CUDA's runtime among it) cannot be unloaded safely. A name
// without a slash is left to the loader's own search.
func Open(name string) (*Library, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	result := C.open_library(text)
	defer C.free(unsafe.Pointer(result.path))
	defer C.free(unsafe.Pointer(result.message))
	if result.api == nil {
		return nil, errors.New(C.GoString(result.message))
	}
	return &Library{api: result.api, path: C.GoString(result.path)}, nil
}

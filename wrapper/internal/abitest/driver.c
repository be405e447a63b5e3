/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int driver_open(driver* d) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  *(void**)&d->begin_capture = dlsym(library, "cuStreamBeginCapture_v2");
  *(void**)&d->is_capturing = dlsym(library, "cuStreamIsCapturing");
  *(void**)&d->end_capture = dlsym(library, "cuStreamEndCapture");
  *(void**)&d->instantiate = dlsym(library, "cuGraphInstantiateWithFlags");
  *(void**)&d->clone = dlsym(library, "cuGraphClone");
  *(void**)&d->launch = dlsym(library, "cuGraphLaunch");
  *(void**)&d->destroy_exec = dlsym(library, "cuGraphExecDestroy");
  *(void**)&d->destroy_graph = dlsym(library, "cuGraphDestroy");
  *(void**)&d->create_stream = dlsym(library, "cuStreamCreate");
  *(void**)&d->destroy_stream = dlsym(library, "cuStreamDestroy_v2");
  *(void**)&d->wait_stream = dlsym(library, "cuStreamSynchronize");
  *(void**)&d->wait_context = dlsym(library, "cuCtxSynchronize");
  *(void**)&d->launch_host = dlsym(library, "cuLaunchHostFunc");
  *(void**)&d->allocate = dlsym(library, "cuMemAlloc_v2");
  *(void**)&d->release = dlsym(library, "cuMemFree_v2");
  return d->create_stream && d->destroy_stream && d->wait_stream && d->wait_context && d->launch_host && d->allocate &&
         d->release && d->begin_capture && d->is_capturing && d->end_capture && d->instantiate && d->launch &&
         d->clone && d->destroy_exec && d->destroy_graph;
}

char* text(const char* format, ...) {
  char* out = NULL;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&out, format, arguments) < 0) out = NULL;
  va_end(arguments);
  return out;
}

void fill_bf16(uint16_t* to, size_t count, unsigned seed) {
  for (size_t i = 0; i < count; ++i) {
    const float value = (float)((int)(rand_r(&seed) % 5) - 2);
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    to[i] = (uint16_t)(bits >> 16);
  }
}

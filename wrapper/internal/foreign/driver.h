/* SPDX-License-Identifier: Apache-2.0
 *
 * What the package calls of CUDA's driver, which is opened at run time.
 */
#ifndef SPARSEK_FOREIGN_DRIVER_H_
#define SPARSEK_FOREIGN_DRIVER_H_

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct driver {
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*primary_retain)(void**, int);
  int (*set_current)(void*);
  int (*mem_alloc)(uint64_t*, size_t);
  int (*mem_free)(uint64_t);
  int (*managed_alloc)(uint64_t*, size_t, unsigned);
  int (*host_alloc)(void**, size_t, unsigned);
  int (*peer_enable)(void*, unsigned);
  int (*to_device)(uint64_t, const void*, size_t, void*);
  int (*to_host)(void*, uint64_t, size_t, void*);
  int (*stream_create)(void**, unsigned);
  int (*stream_destroy)(void*);
  int (*stream_synchronize)(void*);
  int (*begin_capture)(void*, int);
  int (*end_capture)(void*, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*graph_destroy)(void*);
  int (*graph_nodes)(void*, void**, size_t*);
  int (*node_type)(void*, int*);
  int (*kernel_params)(void*, void*);
  int (*function_name)(const char**, void*);
  int (*exec_launch)(void*, void*);
  int (*exec_destroy)(void*);
  void* context;
} driver;

// driver_open gives the number of a CUDA error, or -1 where the driver or one of its functions is missing.
static inline int driver_open(driver* d, int device) {
  void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) return -1;
  struct {
    void** at;
    const char* name;
  } list[] = {
      {(void**)&d->init, "cuInit"},
      {(void**)&d->device_get, "cuDeviceGet"},
      {(void**)&d->primary_retain, "cuDevicePrimaryCtxRetain"},
      {(void**)&d->set_current, "cuCtxSetCurrent"},
      {(void**)&d->mem_alloc, "cuMemAlloc_v2"},
      {(void**)&d->mem_free, "cuMemFree_v2"},
      {(void**)&d->managed_alloc, "cuMemAllocManaged"},
      {(void**)&d->host_alloc, "cuMemHostAlloc"},
      {(void**)&d->peer_enable, "cuCtxEnablePeerAccess"},
      {(void**)&d->to_device, "cuMemcpyHtoDAsync_v2"},
      {(void**)&d->to_host, "cuMemcpyDtoHAsync_v2"},
      {(void**)&d->stream_create, "cuStreamCreate"},
      {(void**)&d->stream_destroy, "cuStreamDestroy_v2"},
      {(void**)&d->stream_synchronize, "cuStreamSynchronize"},
      {(void**)&d->begin_capture, "cuStreamBeginCapture_v2"},
      {(void**)&d->end_capture, "cuStreamEndCapture"},
      {(void**)&d->instantiate, "cuGraphInstantiateWithFlags"},
      {(void**)&d->graph_destroy, "cuGraphDestroy"},
      {(void**)&d->graph_nodes, "cuGraphGetNodes"},
      {(void**)&d->node_type, "cuGraphNodeGetType"},
      {(void**)&d->kernel_params, "cuGraphKernelNodeGetParams_v2"},
      {(void**)&d->function_name, "cuFuncGetName"},
      {(void**)&d->exec_launch, "cuGraphLaunch"},
      {(void**)&d->exec_destroy, "cuGraphExecDestroy"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i)
    if ((*list[i].at = dlsym(lib, list[i].name)) == NULL) return -1;
  int gpu = 0, error = d->init(0);
  if (error == 0) error = d->device_get(&gpu, device);
  if (error == 0) error = d->primary_retain(&d->context, gpu);
  return error;
}

// Each call may be on a thread that has no context yet.
static inline int driver_alloc(driver* d, size_t bytes, uint64_t* out) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->mem_alloc(out, bytes);
}
static inline int driver_free(driver* d, uint64_t at) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->mem_free(at);
}
static inline int driver_alloc_managed(driver* d, size_t bytes, uint64_t* out) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->managed_alloc(out, bytes, 1);  // for all streams
}
static inline int driver_alloc_pinned(driver* d, size_t bytes, uint64_t* out) {
  void* memory = NULL;
  int error = d->set_current(d->context);
  if (error == 0) error = d->host_alloc(&memory, bytes, 0);
  *out = (uint64_t)(uintptr_t)memory;
  return error;
}
// Lets the device of d use the memory of the peer's.
static inline int driver_enable_peer(driver* d, const driver* peer) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->peer_enable(peer->context, 0);
}
static inline int driver_stream(driver* d, uintptr_t* out) {
  void* stream = NULL;
  int error = d->set_current(d->context);
  if (error == 0) error = d->stream_create(&stream, 1);  // one that does not wait for the default stream
  *out = (uintptr_t)stream;
  return error;
}
static inline int driver_stream_end(driver* d, uintptr_t stream) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->stream_destroy((void*)stream);
}
static inline int driver_write(driver* d, uint64_t to, const void* from, size_t bytes, uintptr_t stream) {
  int error = d->set_current(d->context);
  if (error == 0) error = d->to_device(to, from, bytes, (void*)stream);
  return error != 0 ? error : d->stream_synchronize((void*)stream);
}
static inline int driver_read(driver* d, void* to, uint64_t from, size_t bytes, uintptr_t stream) {
  int error = d->set_current(d->context);
  if (error == 0) error = d->to_host(to, from, bytes, (void*)stream);
  return error != 0 ? error : d->stream_synchronize((void*)stream);
}
static inline int driver_begin_capture(driver* d, uintptr_t stream, int mode) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->begin_capture((void*)stream, mode);
}
/* Writes the names of a graph's kernels, a line each, as many as fit. */
static inline int driver_kernel_names(driver* d, void* graph, char* names, size_t room) {
  void* nodes[64];
  size_t count = sizeof nodes / sizeof *nodes, used = 0;
  names[0] = 0;
  int error = d->graph_nodes(graph, nodes, &count);
  for (size_t i = 0; i < count && error == 0; ++i) {
    int type = 0;
    error = d->node_type(nodes[i], &type);
    if (error != 0 || type != 0) continue; /* CU_GRAPH_NODE_TYPE_KERNEL */
    struct {                               /* CUDA_KERNEL_NODE_PARAMS_v2, which begins with the function */
      void* function;
      char rest[192];
    } params = {0};
    const char* name = NULL;
    error = d->kernel_params(nodes[i], &params);
    if (error == 0) error = d->function_name(&name, params.function);
    if (error == 0 && used < room) used += (size_t)snprintf(names + used, room - used, "%s\n", name);
  }
  return error;
}
/* Ends the capture and makes an executable graph of it. */
static inline int driver_end_capture(driver* d, uintptr_t stream, uintptr_t* out, char* names, size_t room) {
  void *graph = NULL, *exec = NULL;
  int error = d->end_capture((void*)stream, &graph);
  if (error == 0) error = driver_kernel_names(d, graph, names, room);
  if (error == 0) error = d->instantiate(&exec, graph, 0);
  if (graph != NULL) d->graph_destroy(graph);
  *out = (uintptr_t)exec;
  return error;
}
static inline int driver_launch(driver* d, uintptr_t exec, uintptr_t stream) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->exec_launch((void*)exec, (void*)stream);
}
static inline int driver_wait(driver* d, uintptr_t stream) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->stream_synchronize((void*)stream);
}
static inline int driver_destroy_exec(driver* d, uintptr_t exec) {
  int error = d->set_current(d->context);
  return error != 0 ? error : d->exec_destroy((void*)exec);
}

#endif

// SPDX-License-Identifier: Apache-2.0

// Package foreign is another library that has memory and a stream: CUDA's driver on a GPU, which is opened at run time,
// and the C library on the CPU. Tests and examples share with it. It is a package because cgo is not available in test
// files.
package foreign

/*
#cgo CFLAGS: -std=gnu11
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct driver {
	int (*init)(unsigned);
	int (*device_get)(int *, int);
	int (*primary_retain)(void **, int);
	int (*set_current)(void *);
	int (*mem_alloc)(uint64_t *, size_t);
	int (*mem_free)(uint64_t);
	int (*to_device)(uint64_t, const void *, size_t, void *);
	int (*to_host)(void *, uint64_t, size_t, void *);
	int (*stream_create)(void **, unsigned);
	int (*stream_destroy)(void *);
	int (*stream_synchronize)(void *);
	void *context;
} driver;

// driver_open gives the number of a CUDA error, or -1 where the driver or one of its functions is missing.
static int driver_open(driver *d, int device) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) return -1;
	struct { void **at; const char *name; } list[] = {
		{(void **)&d->init, "cuInit"}, {(void **)&d->device_get, "cuDeviceGet"},
		{(void **)&d->primary_retain, "cuDevicePrimaryCtxRetain"}, {(void **)&d->set_current, "cuCtxSetCurrent"},
		{(void **)&d->mem_alloc, "cuMemAlloc_v2"}, {(void **)&d->mem_free, "cuMemFree_v2"},
		{(void **)&d->to_device, "cuMemcpyHtoDAsync_v2"}, {(void **)&d->to_host, "cuMemcpyDtoHAsync_v2"},
		{(void **)&d->stream_create, "cuStreamCreate"}, {(void **)&d->stream_destroy, "cuStreamDestroy_v2"},
		{(void **)&d->stream_synchronize, "cuStreamSynchronize"},
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; ++i)
		if ((*list[i].at = dlsym(lib, list[i].name)) == NULL) return -1;
	int gpu = 0, error = d->init(0);
	if (error == 0) error = d->device_get(&gpu, device);
	if (error == 0) error = d->primary_retain(&d->context, gpu);
	return error;
}

// Each call may be on a thread that has no context yet.
static int driver_alloc(driver *d, size_t bytes, uint64_t *out) {
	int error = d->set_current(d->context);
	return error != 0 ? error : d->mem_alloc(out, bytes);
}
static int driver_free(driver *d, uint64_t at) {
	int error = d->set_current(d->context);
	return error != 0 ? error : d->mem_free(at);
}
static int driver_stream(driver *d, uintptr_t *out) {
	void *stream = NULL;
	int error = d->set_current(d->context);
	if (error == 0) error = d->stream_create(&stream, 1); // one that does not wait for the default stream
	*out = (uintptr_t)stream;
	return error;
}
static int driver_stream_end(driver *d, uintptr_t stream) {
	int error = d->set_current(d->context);
	return error != 0 ? error : d->stream_destroy((void *)stream);
}
static int driver_write(driver *d, uint64_t to, const void *from, size_t bytes, uintptr_t stream) {
	int error = d->set_current(d->context);
	if (error == 0) error = d->to_device(to, from, bytes, (void *)stream);
	return error != 0 ? error : d->stream_synchronize((void *)stream);
}
static int driver_read(driver *d, void *to, uint64_t from, size_t bytes, uintptr_t stream) {
	int error = d->set_current(d->context);
	if (error == 0) error = d->to_host(to, from, bytes, (void *)stream);
	return error != 0 ? error : d->stream_synchronize((void *)stream);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Library allocates memory, and copies in a stream of its own.
type Library struct {
	driver *C.driver // nil: the C library
	stream C.uintptr_t
}

// Open opens CUDA's driver for a device or, without a GPU, nothing: the C library is there.
func Open(onGPU bool, device int) (*Library, error) {
	l := &Library{}
	if !onGPU {
		return l, nil
	}
	l.driver = (*C.driver)(C.calloc(1, C.sizeof_driver))
	if err := failed("open CUDA's driver", C.driver_open(l.driver, C.int(device))); err != nil {
		return nil, err
	}
	return l, failed("create a stream", C.driver_stream(l.driver, &l.stream))
}

// Stream is its stream: a CUstream, which is what the runtime calls a cudaStream_t; 0 without a GPU.
func (l *Library) Stream() uintptr { return uintptr(l.stream) }

// Alloc allocates memory, by cuMemAlloc or malloc.
func (l *Library) Alloc(bytes int) (unsafe.Pointer, error) {
	if l.driver == nil {
		return C.malloc(C.size_t(bytes)), nil
	}
	var out C.uint64_t
	err := failed("allocate", C.driver_alloc(l.driver, C.size_t(bytes), &out))
	return *(*unsafe.Pointer)(unsafe.Pointer(&out)), err
}

// Free frees what Alloc gave.
func (l *Library) Free(at unsafe.Pointer) error {
	if l.driver == nil {
		C.free(at)
		return nil
	}
	return failed("free", C.driver_free(l.driver, C.uint64_t(uintptr(at))))
}

// Write copies to its memory, in its stream, and waits.
func (l *Library) Write(to unsafe.Pointer, from []float32) error {
	bytes := C.size_t(4 * len(from))
	if l.driver == nil {
		C.memcpy(to, unsafe.Pointer(&from[0]), bytes)
		return nil
	}
	return failed("copy to the device", C.driver_write(l.driver, C.uint64_t(uintptr(to)), unsafe.Pointer(&from[0]), bytes, l.stream))
}

// Read copies from its memory, in its stream, and waits.
func (l *Library) Read(to []float32, from unsafe.Pointer) error {
	bytes := C.size_t(4 * len(to))
	if l.driver == nil {
		C.memcpy(unsafe.Pointer(&to[0]), from, bytes)
		return nil
	}
	return failed("copy from the device", C.driver_read(l.driver, unsafe.Pointer(&to[0]), C.uint64_t(uintptr(from)), bytes, l.stream))
}

// Close destroys the stream.
func (l *Library) Close() error {
	if l.driver == nil {
		return nil
	}
	err := failed("destroy the stream", C.driver_stream_end(l.driver, l.stream))
	C.free(unsafe.Pointer(l.driver))
	l.driver = nil
	return err
}

func failed(what string, code C.int) error {
	switch code {
	case 0:
		return nil
	case -1:
		return errors.New("there is no CUDA driver")
	}
	return fmt.Errorf("%s: CUDA error %d", what, int(code))
}

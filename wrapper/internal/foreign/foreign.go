// SPDX-License-Identifier: Apache-2.0

// Package foreign is another library that has memory and a stream: CUDA's driver on a GPU, which is opened at run time,
// and the C library on the CPU. Tests and examples share with it, and package timing captures graphs with it. It is a
// package because cgo is not available in test files.
package foreign

/*
#cgo CFLAGS: -std=gnu11
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include <string.h>
#include "driver.h"
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

// AllocManaged allocates managed memory of CUDA, which Free frees.
func (l *Library) AllocManaged(bytes int) (unsafe.Pointer, error) {
	var out C.uint64_t
	err := failed("allocate managed memory", C.driver_alloc_managed(l.driver, C.size_t(bytes), &out))
	return *(*unsafe.Pointer)(unsafe.Pointer(&out)), err
}

// AllocPinned allocates host memory that the GPU can use. It is never freed.
func (l *Library) AllocPinned(bytes int) (unsafe.Pointer, error) {
	var out C.uint64_t
	err := failed("allocate pinned memory", C.driver_alloc_pinned(l.driver, C.size_t(bytes), &out))
	return *(*unsafe.Pointer)(unsafe.Pointer(&out)), err
}

// EnablePeer lets this library's GPU use the memory of another's.
func (l *Library) EnablePeer(other *Library) error {
	return failed("enable peer access", C.driver_enable_peer(l.driver, other.driver))
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

// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package gpu

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// dlerror belongs to the OS thread, so each of these is one call.
static void *open_library(const char *name, char **message) {
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) *message = strdup(dlerror());
	return library;
}

static char *path_of(void *symbol) {
	Dl_info info;
	return dladdr(symbol, &info) != 0 && info.dli_fname != NULL ? strdup(info.dli_fname) : NULL;
}

static int call_init(void *f) { return ((int (*)(unsigned))f)(0); }
static int call_int(void *f, int *out) { return ((int (*)(int *))f)(out); }
static int call_get(void *f, int *out, int device) { return ((int (*)(int *, int))f)(out, device); }
static int call_name(void *f, char *out, int size, int device) { return ((int (*)(char *, int, int))f)(out, size, device); }
static int call_attribute(void *f, int *out, int attribute, int device) {
	return ((int (*)(int *, int, int))f)(out, attribute, device);
}
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"
)

// CUDA's numbers of the codes and attributes used here.
const (
	noDevice       = 100 // CUDA_ERROR_NO_DEVICE
	memoryClock    = 36  // CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE
	memoryBusWidth = 37
	computeMajor   = 75 // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
	computeMinor   = 76
)

// Open tries to open a library, one that has the symbol, by the names given in
// order, and returns the file that was opened. It stays open. The error is that
// of the first name, where none can be opened.
func Open(symbol string, names ...string) (file string, err error) {
	var first error
	for _, name := range names {
		handle, err := open(name)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		f, err := handle.symbol(symbol)
		if err != nil {
			return "", err
		}
		return f.file(), nil
	}
	return "", first
}

// Query asks the driver. The error is ErrNoDriver where there is none; for a
// driver that does not start, the known facts are returned with the error.
func Query() (Driver, error) {
	var d Driver
	handle, err := open("libcuda.so.1")
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	functions := map[string]function{}
	for _, name := range []string{"cuDriverGetVersion", "cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"} {
		if functions[name], err = handle.symbol(name); err != nil {
			return d, err
		}
	}
	check := func(what string, status C.int) error {
		if status != 0 {
			return fmt.Errorf("%s: CUDA error %d", what, int(status))
		}
		return nil
	}
	d.Library = functions["cuInit"].file()
	var n C.int
	if err := check("cuDriverGetVersion", C.call_int(functions["cuDriverGetVersion"].at, &n)); err != nil {
		return d, err
	}
	d.CUDA = int(n)
	switch status := C.call_init(functions["cuInit"].at); status {
	case 0:
	case noDevice:
		return d, nil
	default:
		return d, check("cuInit", status)
	}
	if err := check("cuDeviceGetCount", C.call_int(functions["cuDeviceGetCount"].at, &n)); err != nil {
		return d, err
	}
	for i := range n {
		var device, major, minor C.int
		var name [256]C.char
		err := errors.Join(
			check("cuDeviceGet", C.call_get(functions["cuDeviceGet"].at, &device, i)),
			check("cuDeviceGetName", C.call_name(functions["cuDeviceGetName"].at, &name[0], C.int(len(name)), device)),
			check("cuDeviceGetAttribute", C.call_attribute(functions["cuDeviceGetAttribute"].at, &major, computeMajor, device)),
			check("cuDeviceGetAttribute", C.call_attribute(functions["cuDeviceGetAttribute"].at, &minor, computeMinor, device)))
		if err != nil {
			return d, err
		}
		// Memory transfers on both edges of its clock, which is in kHz; the width is in bits.
		var kilohertz, bits C.int
		if C.call_attribute(functions["cuDeviceGetAttribute"].at, &kilohertz, memoryClock, device) != 0 ||
			C.call_attribute(functions["cuDeviceGetAttribute"].at, &bits, memoryBusWidth, device) != 0 {
			kilohertz, bits = 0, 0
		}
		rate := 2 * 1e3 * float64(kilohertz) * float64(bits) / 8
		d.Devices = append(d.Devices, Device{C.GoString(&name[0]), int(major), int(minor), rate})
	}
	return d, nil
}

type library struct {
	at   unsafe.Pointer
	name string
}

type function struct{ at unsafe.Pointer }

func open(name string) (library, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var message *C.char
	handle := C.open_library(text, &message)
	if handle == nil {
		defer C.free(unsafe.Pointer(message))
		return library{}, errors.New(C.GoString(message))
	}
	return library{handle, name}, nil
}

func (l library) symbol(name string) (function, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	f := C.dlsym(l.at, text)
	if f == nil {
		return function{}, fmt.Errorf("%s has no %s", l.name, name)
	}
	return function{f}, nil
}

// file is the file that the function was loaded from.
func (f function) file() string {
	path := C.path_of(f.at)
	defer C.free(unsafe.Pointer(path))
	return C.GoString(path)
}

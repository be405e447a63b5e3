// SPDX-License-Identifier: Apache-2.0

// Package nvml reads the energy counter of a GPU by NVIDIA's management library, opened at run time: nvidia-smi does not
// show that counter.
package nvml

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static int call_init(void *f) { return ((int (*)(void))f)(); }
static int call_by_index(void *f, unsigned index, void **device) { return ((int (*)(unsigned, void **))f)(index, device); }
static int call_by_uuid(void *f, const char *uuid, void **device) { return ((int (*)(const char *, void **))f)(uuid, device); }
static int call_energy(void *f, void *device, unsigned long long *mj) {
	return ((int (*)(void *, unsigned long long *))f)(device, mj);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"
)

// library is the name that the driver installs it under.
const library = "libnvidia-ml.so.1"

// notSupported is NVML_ERROR_NOT_SUPPORTED.
const notSupported = 3

// Device is a GPU with an energy counter.
type Device struct {
	read   unsafe.Pointer // nvmlDeviceGetTotalEnergyConsumption
	handle unsafe.Pointer
}

// Open finds a GPU by its number in nvidia-smi's order, or by its UUID. Where there is no library, or the GPU has no
// energy counter, the error says so.
func Open(device string) (*Device, error) { return open(library, device) }

func open(library, device string) (*Device, error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	loaded := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL) // stays loaded
	if loaded == nil {
		return nil, fmt.Errorf("the loader finds no %s, which comes with NVIDIA's driver", library)
	}
	functions := map[string]unsafe.Pointer{}
	for _, function := range []string{"nvmlInit_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetTotalEnergyConsumption"} {
		text := C.CString(function)
		functions[function] = C.dlsym(loaded, text)
		C.free(unsafe.Pointer(text))
		if functions[function] == nil {
			return nil, fmt.Errorf("%s has no %s: the driver is too old", library, function)
		}
	}
	if status := C.call_init(functions["nvmlInit_v2"]); status != 0 {
		return nil, fmt.Errorf("%s does not start: NVML error %d", library, int(status))
	}
	d := &Device{read: functions["nvmlDeviceGetTotalEnergyConsumption"]}
	var status C.int
	if index, err := strconv.ParseUint(device, 10, 32); err == nil {
		status = C.call_by_index(functions["nvmlDeviceGetHandleByIndex_v2"], C.uint(index), &d.handle)
	} else {
		uuid := C.CString(device)
		defer C.free(unsafe.Pointer(uuid))
		status = C.call_by_uuid(functions["nvmlDeviceGetHandleByUUID"], uuid, &d.handle)
	}
	if status != 0 {
		return nil, fmt.Errorf("%s finds no GPU %s: NVML error %d", library, device, int(status))
	}
	if _, err := d.Joules(); err != nil {
		return nil, err
	}
	return d, nil
}

// Joules is the energy that the GPU took since the driver was loaded. The driver counts in steps, some tens of
// milliseconds apart.
func (d *Device) Joules() (float64, error) {
	var millijoules C.ulonglong
	switch status := C.call_energy(d.read, d.handle, &millijoules); status {
	case 0:
		return float64(millijoules) / 1e3, nil
	case notSupported:
		return 0, errors.New("this GPU has no energy counter")
	default:
		return 0, fmt.Errorf("read the energy counter: NVML error %d", int(status))
	}
}

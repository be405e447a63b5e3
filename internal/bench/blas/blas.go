// SPDX-License-Identifier: Apache-2.0

// Package blas opens an installed OpenBLAS at run time, as a dense CPU baseline to compare with.
package blas

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

enum { row_major = 101, no_transpose = 111 };

typedef void (*sgemm_function)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                               float *, int);
typedef void (*set_threads_function)(int);
typedef char *(*get_config_function)(void);

static void call_sgemm(void *f, int m, int n, int k, const float *a, const float *b, float *c) {
  ((sgemm_function)f)(row_major, no_transpose, no_transpose, m, n, k, 1.0f, a, k, b, n, 0.0f, c, n);
}
static void call_set_threads(void *f, int n) { ((set_threads_function)f)(n); }
static char *call_get_config(void *f) { return ((get_config_function)f)(); }
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"unsafe"
)

// names are those that distributions give the library.
var names = []string{"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0"}

// ErrNotInstalled is what Open returns where the loader finds no OpenBLAS.
var ErrNotInstalled = errors.New("OpenBLAS is not installed: the loader finds no libopenblas.so.0")

// Library is an OpenBLAS with 32-bit integers. It stays loaded.
type Library struct {
	sgemm  unsafe.Pointer
	config string
}

// timeout is OpenBLAS's variable for how long its threads spin after a product, as a power of two of cycles. With its own
// value they take the cores from what is timed next, for some tens of milliseconds; 4 is the least.
const timeout, shortest = "OPENBLAS_THREAD_TIMEOUT", "4"

// Narrowed says which of the environment's variables choose OpenBLAS's kernels or threads in its place, and so may make it
// slower than it is. environ is as of os.Environ.
func Narrowed(environ []string) (list []string) {
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "OPENBLAS_") && name != timeout {
			list = append(list, pair+" is set, and may make OpenBLAS slower than it is by itself: unset it to compare with its best")
		}
	}
	return list
}

// Open loads OpenBLAS, to run on so many threads, which do not spin when they have nothing to do unless the user's
// environment says so.
func Open(threads int) (*Library, error) {
	if _, set := os.LookupEnv(timeout); !set {
		if err := os.Setenv(timeout, shortest); err != nil {
			return nil, fmt.Errorf("set %s: %w", timeout, err)
		}
	}
	handle := open()
	if handle == nil {
		return nil, ErrNotInstalled
	}
	l := &Library{sgemm: symbol(handle, "cblas_sgemm")}
	setThreads, getConfig := symbol(handle, "openblas_set_num_threads"), symbol(handle, "openblas_get_config")
	if l.sgemm == nil || setThreads == nil || getConfig == nil {
		return nil, errors.New("the OpenBLAS found lacks cblas_sgemm, openblas_set_num_threads or openblas_get_config")
	}
	C.call_set_threads(setThreads, C.int(threads))
	l.config = C.GoString(C.call_get_config(getConfig))
	return l, nil
}

// Config is how the library describes itself: version and processor.
func (l *Library) Config() string { return l.config }

// Sgemm computes C = A B for row-major A (m, k), B (k, n) and C (m, n).
func (l *Library) Sgemm(m, n, k int, a, b, c []float32) error {
	if m < 1 || n < 1 || k < 1 || max(m, n, k) > math.MaxInt32 {
		return fmt.Errorf("sgemm of %d x %d x %d", m, n, k)
	}
	if len(a) < m*k || len(b) < k*n || len(c) < m*n {
		return fmt.Errorf("sgemm of %d x %d x %d: slices of %d, %d and %d elements are too short", m, n, k, len(a), len(b), len(c))
	}
	C.call_sgemm(l.sgemm, C.int(m), C.int(n), C.int(k), (*C.float)(&a[0]), (*C.float)(&b[0]), (*C.float)(&c[0]))
	return nil
}

func open() unsafe.Pointer {
	for _, name := range names {
		text := C.CString(name)
		handle := C.dlopen(text, C.RTLD_NOW|C.RTLD_LOCAL)
		C.free(unsafe.Pointer(text))
		if handle != nil {
			return handle
		}
	}
	return nil
}

func symbol(handle unsafe.Pointer, name string) unsafe.Pointer {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.dlsym(handle, text)
}

// SPDX-License-Identifier: Apache-2.0

// Package onemkl opens an installed oneMKL at run time, for its sparse products on the CPU, as a peer to compare with.
package onemkl

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// What is used of mkl_spblas.h, with 32-bit integers.
enum { no_transpose = 10, row_major = 101, zero_based = 0, general = 20 };

typedef void *matrix;
typedef struct {
  int type, mode, diagonal;
} description;

typedef int (*create_bsr_function)(matrix *, int, int, int, int, int, int *, int *, int *, void *);
typedef int (*create_csr_function)(matrix *, int, int, int, int *, int *, int *, void *);
typedef int (*mv_hint_function)(matrix, int, description, int);
typedef int (*mm_hint_function)(matrix, int, description, int, int, int);
typedef int (*of_matrix_function)(matrix);
typedef void (*set_threads_function)(int);
typedef void (*get_version_function)(char *, int);
typedef int (*s_mv_function)(int, float, matrix, description, const float *, float, float *);
typedef int (*d_mv_function)(int, double, matrix, description, const double *, double, double *);
typedef int (*s_mm_function)(int, float, matrix, description, int, const float *, int, int, float, float *, int);
typedef int (*d_mm_function)(int, double, matrix, description, int, const double *, int, int, double, double *, int);

static const description plain = {general, 0, 0};

static int call_create_bsr(void *f, matrix *a, int rows, int cols, int block, int *row_ptr, int *col_idx, void *values) {
  return ((create_bsr_function)f)(a, zero_based, row_major, rows, cols, block, row_ptr, row_ptr + 1, col_idx, values);
}
static int call_create_csr(void *f, matrix *a, int rows, int cols, int *row_ptr, int *col_idx, void *values) {
  return ((create_csr_function)f)(a, zero_based, rows, cols, row_ptr, row_ptr + 1, col_idx, values);
}
static int call_hint(void *mv, void *mm, matrix a, int n, int calls) {
  return n == 1 ? ((mv_hint_function)mv)(a, no_transpose, plain, calls)
                : ((mm_hint_function)mm)(a, no_transpose, plain, row_major, n, calls);
}
static int call_of_matrix(void *f, matrix a) { return ((of_matrix_function)f)(a); }
static void call_set_threads(void *f, int n) { ((set_threads_function)f)(n); }
static void call_get_version(void *f, char *text, int length) { ((get_version_function)f)(text, length); }
static int call_multiply(void *mv, void *mm, int bytes, matrix a, int n, const void *b, void *c) {
  if (bytes == 4) {
    return n == 1 ? ((s_mv_function)mv)(no_transpose, 1, a, plain, b, 0, c)
                  : ((s_mm_function)mm)(no_transpose, 1, a, plain, row_major, b, n, n, 0, c, n);
  }
  return n == 1 ? ((d_mv_function)mv)(no_transpose, 1, a, plain, b, 0, c)
                : ((d_mm_function)mm)(no_transpose, 1, a, plain, row_major, b, n, n, 0, c, n);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

// names are those that the library has had.
var names = []string{"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"}

// ErrNotInstalled is what Open returns where there is no oneMKL.
var ErrNotInstalled = errors.New("oneMKL is not installed: there is no libmkl_rt.so.3 in MKLROOT, beside python3 or where the loader looks")

// Library is a oneMKL. It stays loaded.
type Library struct {
	functions map[string]unsafe.Pointer
	version   string
}

// needed are the functions that are called.
var needed = []string{"mkl_sparse_s_create_bsr", "mkl_sparse_d_create_bsr", "mkl_sparse_s_create_csr", "mkl_sparse_d_create_csr",
	"mkl_sparse_s_mv", "mkl_sparse_d_mv", "mkl_sparse_s_mm", "mkl_sparse_d_mm", "mkl_sparse_set_mv_hint", "mkl_sparse_set_mm_hint",
	"mkl_sparse_optimize", "mkl_sparse_destroy", "MKL_Set_Num_Threads", "mkl_get_version_string"}

// Open loads oneMKL, to run on so many threads, which do not spin when they have nothing to do unless the user's
// environment says so. It is looked for in MKLROOT/lib, in the folder lib beside that of the python3 on PATH, where
// its wheel puts it, and where the loader looks.
func Open(threads int) (*Library, error) {
	layer := "INTEL"
	if threads == 1 {
		layer = "SEQUENTIAL"
	}
	for name, value := range map[string]string{"KMP_BLOCKTIME": "0", "MKL_THREADING_LAYER": layer} {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				return nil, fmt.Errorf("set %s: %w", name, err)
			}
		}
	}
	handle := open()
	if handle == nil {
		return nil, ErrNotInstalled
	}
	l := &Library{functions: map[string]unsafe.Pointer{}}
	for _, name := range needed {
		if l.functions[name] = symbol(handle, name); l.functions[name] == nil {
			return nil, fmt.Errorf("the oneMKL found lacks %s", name)
		}
	}
	C.call_set_threads(l.functions["MKL_Set_Num_Threads"], C.int(threads))
	var text [256]C.char
	C.call_get_version(l.functions["mkl_get_version_string"], &text[0], C.int(len(text)-1))
	l.version = strings.TrimSpace(C.GoString(&text[0]))
	return l, nil
}

// Version is how the library describes itself.
func (l *Library) Version() string { return l.version }

// Matrix is a sparse matrix in oneMKL's hands, which it may have turned into a layout of its own.
type Matrix struct {
	l          *Library
	handle     C.matrix
	rows, cols int
	n, bytes   int
	memory     []unsafe.Pointer
}

// analysedFor is how many products oneMKL is told to expect, so that no analysis is too much.
const analysedFor = 100000

// NewMatrix makes a matrix for products by n columns: in blocks, which must be square, or in single elements, and has it
// analysed. Values are copied.
func NewMatrix[T float32 | float64](l *Library, a bsr.Matrix[T], blocked bool, n int) (m *Matrix, err error) {
	if max(a.Rows, a.Cols, n, len(a.Values)) > math.MaxInt32 {
		return nil, errors.New("more rows, columns or values than 32-bit integers count")
	}
	if blocked && (a.BlockM != a.BlockK || a.Rows%a.BlockM != 0 || a.Cols%a.BlockK != 0) {
		return nil, fmt.Errorf("blocks of %d x %d of a matrix of %d x %d: they must be square, and whole", a.BlockM, a.BlockK, a.Rows, a.Cols)
	}
	var zero T
	m = &Matrix{l: l, rows: a.Rows, cols: a.Cols, n: n, bytes: int(unsafe.Sizeof(zero))}
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	if blocked {
		err = m.check("create_bsr", C.call_create_bsr(l.of("create_bsr", m.bytes), &m.handle, C.int(a.BlockRows), C.int(a.BlockCols),
			C.int(a.BlockM), (*C.int)(keep(m, a.RowPtr)), (*C.int)(keep(m, a.ColIdx)), keep(m, a.Values)))
	} else {
		rowPtr, colIdx, values := elements(a)
		err = m.check("create_csr", C.call_create_csr(l.of("create_csr", m.bytes), &m.handle, C.int(a.Rows), C.int(a.Cols),
			(*C.int)(keep(m, rowPtr)), (*C.int)(keep(m, colIdx)), keep(m, values)))
	}
	if err != nil {
		return nil, err
	}
	// A hint that is refused is none.
	C.call_hint(l.functions["mkl_sparse_set_mv_hint"], l.functions["mkl_sparse_set_mm_hint"], m.handle, C.int(n), analysedFor)
	return m, m.check("optimize", C.call_of_matrix(l.functions["mkl_sparse_optimize"], m.handle))
}

// elements is a in single elements, row by row.
func elements[T float32 | float64](a bsr.Matrix[T]) (rowPtr, colIdx []int32, values []T) {
	rowPtr = append(rowPtr, 0)
	for row := range a.Rows {
		r, i := row/a.BlockM, row%a.BlockM
		for e := a.RowPtr[r]; e < a.RowPtr[r+1]; e++ {
			first := int(a.ColIdx[e]) * a.BlockK
			width := min(a.BlockK, a.Cols-first)
			values = append(values, a.Values[(int(e)*a.BlockM+i)*a.BlockK:][:width]...)
			for k := range width {
				colIdx = append(colIdx, int32(first+k))
			}
		}
		rowPtr = append(rowPtr, int32(len(values)))
	}
	return rowPtr, colIdx, values
}

// Multiply computes C = A B for row-major B (cols, n) and C (rows, n).
func Multiply[T float32 | float64](m *Matrix, b, c []T) error {
	if len(b) < m.cols*m.n || len(c) < m.rows*m.n || m.rows == 0 || m.cols == 0 {
		return fmt.Errorf("%d x %d by %d columns: slices of %d and %d elements do not do", m.rows, m.cols, m.n, len(b), len(c))
	}
	return m.check("multiply", C.call_multiply(m.l.of("mv", m.bytes), m.l.of("mm", m.bytes), C.int(m.bytes), m.handle, C.int(m.n),
		unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])))
}

// Close frees the matrix.
func (m *Matrix) Close() error {
	if m.handle != nil {
		C.call_of_matrix(m.l.functions["mkl_sparse_destroy"], m.handle)
		m.handle = nil
	}
	for _, memory := range m.memory {
		C.free(memory)
	}
	m.memory = nil
	return nil
}

// of is a function for elements of so many bytes.
func (l *Library) of(name string, bytes int) unsafe.Pointer {
	letter := "s"
	if bytes == 8 {
		letter = "d"
	}
	return l.functions["mkl_sparse_"+letter+"_"+name]
}

func (m *Matrix) check(what string, status C.int) error {
	if status != 0 {
		return fmt.Errorf("oneMKL's mkl_sparse %s gave status %d", what, int(status))
	}
	return nil
}

// keep copies a slice to memory of C, for as long as the matrix exists.
func keep[T any](m *Matrix, from []T) unsafe.Pointer {
	var one T
	bytes := len(from) * int(unsafe.Sizeof(one))
	to := C.malloc(C.size_t(max(bytes, 1)))
	m.memory = append(m.memory, to)
	copy(unsafe.Slice((*T)(to), len(from)), from)
	return to
}

// open loads the library, and its threads from the same folder, which it would look for where the loader does.
func open() unsafe.Pointer {
	folders := []string{""}
	if python, err := exec.LookPath("python3"); err == nil {
		folders = append([]string{filepath.Join(filepath.Dir(filepath.Dir(python)), "lib")}, folders...)
	}
	if root := os.Getenv("MKLROOT"); root != "" {
		folders = append([]string{filepath.Join(root, "lib"), filepath.Join(root, "lib", "intel64")}, folders...)
	}
	for _, folder := range folders {
		for _, name := range names {
			path := filepath.Join(folder, name)
			if _, err := os.Stat(path); folder != "" && err != nil {
				continue
			}
			load(filepath.Join(folder, "libiomp5.so"))
			if handle := load(path); handle != nil {
				return handle
			}
		}
	}
	return nil
}

func load(path string) unsafe.Pointer {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	return C.dlopen(text, C.RTLD_NOW|C.RTLD_GLOBAL)
}

func symbol(handle unsafe.Pointer, name string) unsafe.Pointer {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.dlsym(handle, text)
}

// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

func init() {
	native.NewError = func(op string, status int32, message string) error {
		return &Error{Op: op, Status: Status(status), Msg: message}
	}
}

// Status is the code of a failed call. It is an error, so that errors.Is(err, sparsek.ErrColIdxRange) works on
// whatever a function of this package returned.
type Status int32

// The statuses, as sparsek.h numbers them.
const (
	// Faults of the call.
	ErrNullPointer         Status = 1 // an argument that must be there is not
	ErrBadABISize          Status = 2 // the library and this package do not fit
	ErrBadSize             Status = 3 // a negative, zero or overflowing extent, or a slice too short for one
	ErrBadArgument         Status = 4 // a value or combination that does not exist
	ErrBadLeadingDimension Status = 5 // a stride below the columns, or not what the kernel takes
	ErrMisaligned          Status = 6 // an operand that is not aligned as was planned for
	ErrWrongMemory         Status = 7 // host memory where device memory is needed, or the other way round

	// Faults of the index of a BSR matrix.
	ErrRowPtrStart       Status = 10 // RowPtr[0] is not 0
	ErrRowPtrNotMonotone Status = 11 // RowPtr decreases
	ErrRowPtrEnd         Status = 12 // the last of RowPtr is not len(ColIdx)
	ErrColIdxRange       Status = 13 // a block column that is negative or beyond the last
	ErrColIdxUnsorted    Status = 14 // block columns that decrease within a block row
	ErrColIdxRepeated    Status = 15 // a block column twice in a block row
	ErrBlockIdxRange     Status = 16 // a block of values that is negative or beyond the last
	ErrOverCapacity      Status = 17 // an index that is made has more blocks than there is room for

	// What this build or machine cannot do.
	ErrUnsupportedDType Status = 20 // a type of elements that the back-end or the kernel does not serve
	ErrUnsupportedBlock Status = 21 // a block size that the back-end or the kernel does not serve
	ErrNoSuchKernel     Status = 22 // a kernel asked for by name does not exist or does not serve the case
	ErrNoDevice         Status = 23 // no CUDA driver, no GPU, or none of compute capability 9.0
	ErrNoLibrary        Status = 24 // a library that libsparsek opens at run time is not there: cuBLAS or cuSPARSE

	// Faults of the machine.
	ErrOutOfMemory Status = 30 // of the host or of the device; the message says which
	ErrCUDA        Status = 31 // a CUDA call failed; the message names it and its code
	ErrInternal    Status = 32 // a fault of libsparsek itself
	ErrIO          Status = 33 // a file that cannot be read or written

	ErrCheckFailed Status = 40 // an element of C is beyond its error bound

	ErrNotReady Status = 50 // not known yet: ask again, or wait
)

var statusNames = map[Status]string{
	ErrNullPointer:         "SPARSEK_NULL_POINTER",
	ErrBadABISize:          "SPARSEK_BAD_ABI_SIZE",
	ErrBadSize:             "SPARSEK_BAD_SIZE",
	ErrBadArgument:         "SPARSEK_BAD_ARGUMENT",
	ErrBadLeadingDimension: "SPARSEK_BAD_LEADING_DIMENSION",
	ErrMisaligned:          "SPARSEK_MISALIGNED",
	ErrWrongMemory:         "SPARSEK_WRONG_MEMORY",
	ErrRowPtrStart:         "SPARSEK_ROW_PTR_START",
	ErrRowPtrNotMonotone:   "SPARSEK_ROW_PTR_NOT_MONOTONE",
	ErrRowPtrEnd:           "SPARSEK_ROW_PTR_END",
	ErrColIdxRange:         "SPARSEK_COL_IDX_RANGE",
	ErrColIdxUnsorted:      "SPARSEK_COL_IDX_UNSORTED",
	ErrColIdxRepeated:      "SPARSEK_COL_IDX_REPEATED",
	ErrBlockIdxRange:       "SPARSEK_BLOCK_IDX_RANGE",
	ErrOverCapacity:        "SPARSEK_OVER_CAPACITY",
	ErrUnsupportedDType:    "SPARSEK_UNSUPPORTED_DTYPE",
	ErrUnsupportedBlock:    "SPARSEK_UNSUPPORTED_BLOCK",
	ErrNoSuchKernel:        "SPARSEK_NO_SUCH_KERNEL",
	ErrNoDevice:            "SPARSEK_NO_DEVICE",
	ErrNoLibrary:           "SPARSEK_NO_LIBRARY",
	ErrOutOfMemory:         "SPARSEK_OUT_OF_MEMORY",
	ErrCUDA:                "SPARSEK_CUDA_ERROR",
	ErrInternal:            "SPARSEK_INTERNAL",
	ErrIO:                  "SPARSEK_IO_ERROR",
	ErrCheckFailed:         "SPARSEK_CHECK_FAILED",
	ErrNotReady:            "SPARSEK_NOT_READY",
}

// Error is the status's name in sparsek.h.
func (s Status) Error() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("sparsek status %d", int32(s))
}

// Error is a call that failed.
type Error struct {
	Op     string // what was asked for: "create matrix"
	Status Status
	Msg    string // what was wrong with what, and what to do
}

func (e *Error) Error() string {
	return fmt.Sprintf("sparsek: %s: %s (%s)", e.Op, e.Msg, e.Status.Error())
}

// Unwrap gives the status to errors.Is.
func (e *Error) Unwrap() error { return e.Status }

// ErrClosed is what the use of a closed engine, matrix, plan, buffer or stream returns, wrapped; and that of one
// whose engine or matrix is closed.
var ErrClosed = errors.New("sparsek: use after Close")

// fault makes the error of a call that this package refuses.
func fault(op string, status Status, format string, args ...any) error {
	return &Error{Op: op, Status: status, Msg: fmt.Sprintf(format, args...)}
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Exit codes, in ranges by cause; docs/cli.md lists them.
const (
	exitOK          = 0
	exitWrongResult = 1
	exitUsage       = 2

	// what was given to work on
	exitBadFile  = 10 // cannot be read, or is not what it should be
	exitOverflow = 11 // values that the type does not hold
	exitBadSizes = 12 // sizes that do not fit each other, or an index that is wrong

	// the library and the machine
	exitNoLibrary   = 20
	exitNoDevice    = 21
	exitUnsupported = 22
	exitNoMemory    = 23
	exitCUDA        = 24
	exitInternal    = 29

	exitBadOutput = 30

	// what the profile gate found
	exitGateFail      = 40 // a regression, or a baseline that is not what was blessed
	exitAmbiguous     = 41
	exitStale         = 42 // the baseline is of other machine code
	exitNotMeasurable = 43

	exitInterrupted = 130 // as shells have it for SIGINT
)

// failure is an error with its exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &failure{code, err}
}

func failf(code int, format string, args ...any) error {
	return fail(code, fmt.Errorf(format, args...))
}

// statusCodes are the exit codes of the library's statuses; others are faults of this program.
var statusCodes = map[sparsek.Status]int{
	sparsek.ErrBadSize:           exitBadSizes,
	sparsek.ErrRowPtrStart:       exitBadSizes,
	sparsek.ErrRowPtrNotMonotone: exitBadSizes,
	sparsek.ErrRowPtrEnd:         exitBadSizes,
	sparsek.ErrColIdxRange:       exitBadSizes,
	sparsek.ErrColIdxUnsorted:    exitBadSizes,
	sparsek.ErrColIdxRepeated:    exitBadSizes,
	sparsek.ErrUnsupportedDType:  exitUnsupported,
	sparsek.ErrUnsupportedBlock:  exitUnsupported,
	sparsek.ErrNoSuchKernel:      exitUnsupported,
	sparsek.ErrNoDevice:          exitNoDevice,
	sparsek.ErrNoLibrary:         exitNoLibrary,
	sparsek.ErrOutOfMemory:       exitNoMemory,
	sparsek.ErrCUDA:              exitCUDA,
	sparsek.ErrCheckFailed:       exitWrongResult,
	sparsek.ErrBadABISize:        exitNoLibrary,
	sparsek.ErrIO:                exitBadOutput, // what is only read is no error of the library
}

// exitCode finds the code of an error.
func exitCode(err error) int {
	var f *failure
	var status sparsek.Status
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &status):
		if code, ok := statusCodes[status]; ok {
			return code
		}
	}
	return exitInternal
}

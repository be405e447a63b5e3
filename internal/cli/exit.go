// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/cli/exitcode"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// The exit codes, by their short names here.
const (
	exitOK            = exitcode.OK
	exitWrongResult   = exitcode.WrongResult
	exitUsage         = exitcode.Usage
	exitBadFile       = exitcode.BadFile
	exitOverflow      = exitcode.Overflow
	exitBadSizes      = exitcode.BadSizes
	exitNoLibrary     = exitcode.NoLibrary
	exitNoDevice      = exitcode.NoDevice
	exitUnsupported   = exitcode.Unsupported
	exitNoMemory      = exitcode.NoMemory
	exitCUDA          = exitcode.CUDA
	exitInternal      = exitcode.Internal
	exitBadOutput     = exitcode.BadOutput
	exitGateFail      = exitcode.GateFail
	exitAmbiguous     = exitcode.Ambiguous
	exitStale         = exitcode.Stale
	exitNotMeasurable = exitcode.NotMeasurable
	exitDrift         = exitcode.Drift
	exitInterrupted   = exitcode.Interrupted
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

// SPDX-License-Identifier: Apache-2.0

// Package exitcode has the exit codes of the program, for itself and for those that run it.
package exitcode

// In ranges by cause; docs/cli.md lists them.
const (
	OK          = 0
	WrongResult = 1
	Usage       = 2

	// what was given to work on
	BadFile  = 10 // cannot be read, or is not what it should be
	Overflow = 11 // values that the type does not hold
	BadSizes = 12 // sizes that do not fit each other, or an index that is wrong

	// the library and the machine
	NoLibrary   = 20
	NoDevice    = 21
	Unsupported = 22
	NoMemory    = 23
	CUDA        = 24
	Internal    = 29

	BadOutput = 30

	// what the profile gate found
	GateFail      = 40 // a regression, or a baseline that is not what was blessed
	Ambiguous     = 41
	Stale         = 42 // the baseline is of other machine code
	NotMeasurable = 43
	Drift         = 44 // figures are far worse, and neither machine code nor plan changed

	Interrupted = 130 // as shells have it for SIGINT
)

// SPDX-License-Identifier: Apache-2.0

// Package testdata has the files that SciPy wrote for the tests, compiled in so that a test program runs anywhere.
// scripts/make_testdata.py makes them.
package testdata

import "embed"

// SciPy holds the folder "scipy".
//
//go:embed scipy
var SciPy embed.FS

// SPDX-License-Identifier: Apache-2.0

package humanize

import (
	"math"
	"strconv"
	"strings"
)

// Seconds writes a time with three digits.
func Seconds(s float64) string {
	switch {
	case s >= 0.9995:
		return Digits(s) + " s"
	case s >= 0.9995e-3:
		return Digits(s*1e3) + " ms"
	}
	return Digits(s*1e6) + " us"
}

// Digits writes a number with three significant digits, and without an exponent where that is short.
func Digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95 && a < 1e6:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995 && a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995 && a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 0.01 && a < 0.9995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// Percent writes a share as a percentage.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// OneLine replaces each run of white space, line breaks among it, by one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

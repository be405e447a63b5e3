// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Unit is what a metric is given in, whatever the profiler scaled it to.
type Unit string

// The units of normal figures.
const (
	Percent     Unit = "%"
	Count       Unit = "" // cycles, instructions, requests, registers a thread
	Nanoseconds Unit = "ns"
	Bytes       Unit = "byte"
)

// errNoValue is what the profiler says of a counter that it could not read: "n/a", "(nan)", nothing.
var errNoValue = errors.New("no value")

// A number in English form: thousands may be separated by commas. Anything else, such as a decimal comma, is refused
// rather than read as a thousand times as much.
var numberForm = regexp.MustCompile(`^[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?([eE][+-]?\d+)?$`)

// parseNumber reads a value as the profiler prints it.
func parseNumber(text string) (float64, error) {
	text = strings.TrimSpace(text)
	switch strings.ToLower(strings.Trim(text, "()")) {
	case "", "n/a", "nan", "-nan", "inf", "-inf":
		return 0, errNoValue
	}
	if !numberForm.MatchString(text) {
		return 0, fmt.Errorf("%q is no number (want digits, commas between thousands, a decimal point)", text)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return v, nil
}

// scales are what one of a unit, as different versions of the profiler spell it, is worth in the base unit.
var scales = map[Unit]map[string]float64{
	Percent:     {"%": 1, "": 1},
	Nanoseconds: {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9},
	Bytes: {"byte": 1, "b": 1, "kbyte": 1e3, "kb": 1e3, "mbyte": 1e6, "mb": 1e6, "gbyte": 1e9, "gb": 1e9,
		"tbyte": 1e12, "tb": 1e12, "kibyte": 1 << 10, "mibyte": 1 << 20, "gibyte": 1 << 30},
	Count: {"": 1, "cycle": 1, "kcycle": 1e3, "mcycle": 1e6, "inst": 1, "kinst": 1e3, "request": 1, "krequest": 1e3,
		"register/thread": 1, "warp": 1},
}

// toBase converts a value in the unit that the profiler names.
func toBase(v float64, unit string, to Unit) (float64, error) {
	scale, ok := scales[to][strings.ToLower(strings.TrimSpace(unit))]
	if !ok {
		return 0, fmt.Errorf("unit %q is not known for a figure in %q", unit, to)
	}
	return v * scale, nil
}

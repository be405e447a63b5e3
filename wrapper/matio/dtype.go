// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/sparsek/sparsek/wrapper/half"
)

// dtype is a NumPy element type: kind 'f', 'i', 'u', 'b' (boolean), 'S' (bytes) or 'U' (UCS-4 text), and its size in
// bytes.
type dtype struct {
	kind  byte
	size  int
	order binary.ByteOrder
}

// parseDtype reads a type as .npy files name it: "<f8", "|b1", ">i4".
func parseDtype(descr string) (dtype, error) {
	if descr == "|O" {
		return dtype{}, errors.New("the elements are pickled Python objects, which are not read")
	}
	if len(descr) < 3 {
		return dtype{}, fmt.Errorf("%q is no type of elements", descr)
	}
	d := dtype{kind: descr[1], order: binary.LittleEndian}
	switch descr[0] {
	case '<', '|':
	case '>':
		d.order = binary.BigEndian
	default:
		return dtype{}, fmt.Errorf("type %q has an unknown byte order", descr)
	}
	n, err := strconv.ParseUint(descr[2:], 10, 16)
	if err != nil {
		return dtype{}, fmt.Errorf("type %q has no size", descr)
	}
	d.size = int(n)
	known := false
	switch d.kind {
	case 'f':
		known = n == 2 || n == 4 || n == 8
	case 'i', 'u':
		known = n == 1 || n == 2 || n == 4 || n == 8
	case 'b':
		known = n == 1
	case 'S':
		known = n > 0
	case 'U':
		known = n > 0
		d.size = 4 * int(n)
	case 'c':
		return dtype{}, fmt.Errorf("type %q is complex: only real numbers can be multiplied", descr)
	}
	if !known {
		return dtype{}, fmt.Errorf("type %q is none of f2, f4, f8, i1 to i8, u1 to u8 and b1", descr)
	}
	return d, nil
}

// number reports whether elements have a value as a number.
func (d dtype) number() bool { return d.kind != 'S' && d.kind != 'U' }

// float64 gives the function that reads one element as the nearest float64. d must be a number.
func (d dtype) float64() func(b []byte) float64 {
	o := d.order
	switch d.kind {
	case 'f':
		switch d.size {
		case 2:
			return func(b []byte) float64 { return float64(half.Float16(o.Uint16(b)).Float32()) }
		case 4:
			return func(b []byte) float64 { return float64(math.Float32frombits(o.Uint32(b))) }
		}
		return func(b []byte) float64 { return math.Float64frombits(o.Uint64(b)) }
	case 'b':
		return func(b []byte) float64 {
			if b[0] != 0 {
				return 1
			}
			return 0
		}
	}
	if d.kind == 'u' && d.size == 8 {
		return func(b []byte) float64 { return float64(o.Uint64(b)) }
	}
	whole := d.int64()
	return func(b []byte) float64 { return float64(whole(b)) }
}

// int64 gives the function that reads one element of an integer type; values of u8 beyond 2^63 come out negative.
func (d dtype) int64() func(b []byte) int64 {
	o, signed := d.order, d.kind == 'i'
	switch d.size {
	case 1:
		if signed {
			return func(b []byte) int64 { return int64(int8(b[0])) }
		}
		return func(b []byte) int64 { return int64(b[0]) }
	case 2:
		if signed {
			return func(b []byte) int64 { return int64(int16(o.Uint16(b))) }
		}
		return func(b []byte) int64 { return int64(o.Uint16(b)) }
	case 4:
		if signed {
			return func(b []byte) int64 { return int64(int32(o.Uint32(b))) }
		}
		return func(b []byte) int64 { return int64(o.Uint32(b)) }
	}
	return func(b []byte) int64 { return int64(o.Uint64(b)) }
}

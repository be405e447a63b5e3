// SPDX-License-Identifier: Apache-2.0

// Package half has the two 16-bit floating point types and one of 8 bits, and converts them from and to float32 and float64. It
// needs no cgo.
//
// Rounding is to nearest, ties to even, and happens once: a float64 is not rounded to float32 on the way. Values
// beyond the largest finite one become infinities, or where there are none, that one; subnormals are kept; a NaN stays a (quiet)
// NaN of its sign.
package half

import "math"

// BFloat16 is the bit pattern of a bfloat16: 1 sign, 8 exponent and 7 fraction bits.
type BFloat16 uint16

// Float16 is the bit pattern of an IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
type Float16 uint16

// ToBFloat16 gives the bfloat16 nearest to x.
func ToBFloat16(x float32) BFloat16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return BFloat16(b>>16) | 0x0040
	}
	return BFloat16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 gives the value, exactly.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

const (
	fp16Overflow  = 0x47800000 // 2^16: everything from here on is an infinity whatever the rounding
	fp16MinNormal = 0x38800000 // 2^-14
	// Added to a value below 2^-14, 0.5 shifts the last bit of the sum to 2^-24, which is fp16's smallest
	// subnormal: the addition itself does the rounding.
	fp16Denormaliser = 0x3f000000
)

// ToFloat16 gives the binary16 nearest to x.
func ToFloat16(x float32) Float16 {
	b := math.Float32bits(x)
	sign := Float16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | Float16(b>>13&0x3ff)
	case b >= fp16Overflow:
		return sign | 0x7c00
	case b < fp16MinNormal:
		sum := math.Float32frombits(b) + math.Float32frombits(fp16Denormaliser)
		return sign | Float16(math.Float32bits(sum)-fp16Denormaliser)
	}
	// The exponent's bias changes from 127 to 15; a carry out of the fraction runs into the exponent, up to infinity.
	return sign | Float16((b-(127-15)<<23+0xfff+b>>13&1)>>13)
}

// Float32 gives the value, exactly.
func (h Float16) Float32() float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0:
		v := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	case 0x1f:
		if fraction != 0 {
			fraction |= 0x200
		}
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// BFloat16From64 gives the bfloat16 nearest to x.
func BFloat16From64(x float64) BFloat16 { return ToBFloat16(roundToOdd(x)) }

// Float16From64 gives the binary16 nearest to x.
func Float16From64(x float64) Float16 { return ToFloat16(roundToOdd(x)) }

// roundToOdd gives a float32 from which rounding to a type of at least two fewer bits gives the same as rounding x
// itself: the last bit is set where anything was cut off, so that no false tie arises (Boldo and Melquiond, "When
// double rounding is odd", 2005).
func roundToOdd(x float64) float32 {
	f := float32(x)
	back := float64(f)
	if back == x || x != x {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(back) > math.Abs(x) {
		b-- // towards zero; from infinity this is the largest finite value
	}
	return math.Float32frombits(b | 1)
}

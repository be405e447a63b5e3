// SPDX-License-Identifier: Apache-2.0

// Package half converts between float32, float64 and the two 16-bit floating point types, as bit patterns.
//
// Rounding is to nearest, ties to even, and happens once: a float64 is not rounded to float32 on the way. Values
// beyond the largest finite one become infinities; subnormals are kept; a NaN stays a (quiet) NaN of its sign.
package half

import "math"

// BFloat16 gives the bfloat16 (8 exponent bits, 7 fraction bits) nearest to x.
func BFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x0040
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromBFloat16 gives the value of a bfloat16, exactly.
func FromBFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

const (
	fp16Overflow  = 0x47800000 // 2^16: everything from here on is an infinity whatever the rounding
	fp16MinNormal = 0x38800000 // 2^-14
	// Added to a value below 2^-14, 0.5 shifts the last bit of the sum to 2^-24, which is fp16's smallest
	// subnormal: the addition itself does the rounding.
	fp16Denormaliser = 0x3f000000
)

// Float16 gives the IEEE binary16 nearest to x.
func Float16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= fp16Overflow:
		return sign | 0x7c00
	case b < fp16MinNormal:
		sum := math.Float32frombits(b) + math.Float32frombits(fp16Denormaliser)
		return sign | uint16(math.Float32bits(sum)-fp16Denormaliser)
	}
	// The exponent's bias changes from 127 to 15; a carry out of the fraction runs into the exponent, up to infinity.
	return sign | uint16((b-(127-15)<<23+0xfff+b>>13&1)>>13)
}

// FromFloat16 gives the value of an IEEE binary16, exactly.
func FromFloat16(h uint16) float32 {
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
func BFloat16From64(x float64) uint16 { return BFloat16(roundToOdd(x)) }

// Float16From64 gives the IEEE binary16 nearest to x.
func Float16From64(x float64) uint16 { return Float16(roundToOdd(x)) }

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

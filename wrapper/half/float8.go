// SPDX-License-Identifier: Apache-2.0

package half

import "math"

// Float8E4M3 is the bit pattern of an E4M3 of OCP's FP8: 1 sign, 4 exponent and 3 fraction bits. It has no infinities: 0x7f and
// 0xff are NaN, and 448 is the largest value.
type Float8E4M3 uint8

const (
	e4m3Largest   = 0x43e00000 // 448
	e4m3MinNormal = 0x3c800000 // 2^-6
	// As fp16Denormaliser: the last bit of a sum with 2^14 is 2^-9, E4M3's smallest subnormal.
	e4m3Denormaliser = 0x46800000
)

// ToFloat8E4M3 gives the E4M3 nearest to x. Values beyond the largest one, infinite ones too, become that of their sign, as where
// GPUs convert (OCP's saturation), and not NaN as in torch. To lose nothing by it, divide by a scale first.
func ToFloat8E4M3(x float32) Float8E4M3 {
	b := math.Float32bits(x)
	sign := Float8E4M3(b >> 24 & 0x80)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7f
	case b >= e4m3Largest:
		return sign | 0x7e
	case b < e4m3MinNormal:
		sum := math.Float32frombits(b) + math.Float32frombits(e4m3Denormaliser)
		return sign | Float8E4M3(math.Float32bits(sum)-e4m3Denormaliser)
	}
	// The exponent's bias changes from 127 to 7; a carry out of the fraction runs into the exponent.
	return sign | Float8E4M3((b-(127-7)<<23+0x7ffff+b>>20&1)>>20)
}

// Float32 gives the value, exactly.
func (h Float8E4M3) Float32() float32 {
	sign := uint32(h&0x80) << 24
	exponent, fraction := uint32(h>>3&0xf), uint32(h&7)
	switch {
	case exponent == 0:
		v := float32(fraction) * (1.0 / (1 << 9))
		return math.Float32frombits(sign | math.Float32bits(v))
	case h&0x7f == 0x7f:
		return math.Float32frombits(sign | 0x7fc00000)
	}
	return math.Float32frombits(sign | (exponent+127-7)<<23 | fraction<<20)
}

// Float8E4M3From64 gives the E4M3 nearest to x.
func Float8E4M3From64(x float64) Float8E4M3 { return ToFloat8E4M3(roundToOdd(x)) }

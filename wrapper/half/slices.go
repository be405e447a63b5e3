// SPDX-License-Identifier: Apache-2.0

package half

// Number is any of the types.
type Number interface {
	BFloat16 | Float16 | Float8E4M3
}

// Encode rounds src to dst, element by element, and gives their number: that of the shorter, as with copy.
func Encode[T Number](dst []T, src []float32) int {
	n := min(len(dst), len(src))
	switch dst := any(dst).(type) {
	case []BFloat16:
		for i, x := range src[:n] {
			dst[i] = ToBFloat16(x)
		}
	case []Float16:
		for i, x := range src[:n] {
			dst[i] = ToFloat16(x)
		}
	case []Float8E4M3:
		for i, x := range src[:n] {
			dst[i] = ToFloat8E4M3(x)
		}
	}
	return n
}

// Decode gives the values of src in dst, exactly, and their number: that of the shorter, as with copy.
func Decode[T Number](dst []float32, src []T) int {
	n := min(len(dst), len(src))
	switch src := any(src).(type) {
	case []BFloat16:
		for i, x := range src[:n] {
			dst[i] = x.Float32()
		}
	case []Float16:
		for i, x := range src[:n] {
			dst[i] = x.Float32()
		}
	case []Float8E4M3:
		for i, x := range src[:n] {
			dst[i] = x.Float32()
		}
	}
	return n
}

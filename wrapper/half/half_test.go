// SPDX-License-Identifier: Apache-2.0

package half

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/x448/float16"
)

func TestFloat16RoundTripsEveryValue(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got, want := fromFloat16(h), float16.Frombits(h).Float32()
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("FromFloat16(%#04x) = %x, want %x", h, math.Float32bits(got), math.Float32bits(want))
		}
		back := toFloat16(got)
		if got != got {
			if back&0x7c00 != 0x7c00 || back&0x200 == 0 || back>>15 != h>>15 {
				t.Fatalf("NaN %#04x comes back as %#04x", h, back)
			}
			continue
		}
		if back != h {
			t.Fatalf("Float16(fromFloat16(%#04x)) = %#04x", h, back)
		}
	}
}

// float32s lists, for every pattern of the upper bits that a rounding sees, the lower bits around its ties.
func float32s(yield func(float32) bool) {
	for top := range uint32(1 << 16) {
		for _, low := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xb000, 0xd000, 0xf000, 0xffff} {
			if !yield(math.Float32frombits(top<<16 | low)) {
				return
			}
		}
	}
}

func TestFloat16AgainstOracle(t *testing.T) {
	for x := range float32s {
		got, want := toFloat16(x), float16.Fromfloat32(x).Bits()
		if got != want && x == x {
			t.Fatalf("Float16(%g = %#x) = %#04x, want %#04x", x, math.Float32bits(x), got, want)
		}
		if x != x && (got&0x7e00 != 0x7e00) {
			t.Fatalf("Float16(NaN %#x) = %#04x is no quiet NaN", math.Float32bits(x), got)
		}
	}
}

// nearestBFloat16 decides by exact distances which of the finite or infinite neighbours x rounds to.
func nearestBFloat16(x float32) uint16 {
	low := uint16(math.Float32bits(x) >> 16) // cut: the neighbour towards zero
	high := low + 1
	value := func(h uint16) float64 {
		if h&0x7fff == 0x7f80 { // as if the exponent went on
			return math.Copysign(math.Ldexp(1, 128), float64(int16(h)))
		}
		return float64(fromBFloat16(h))
	}
	below, above := math.Abs(float64(x)-value(low)), math.Abs(value(high)-float64(x))
	if below < above || below == above && low&1 == 0 {
		return low
	}
	return high
}

func TestBFloat16(t *testing.T) {
	for x := range float32s {
		got := toBFloat16(x)
		switch {
		case x != x:
			if v := fromBFloat16(got); v == v || got&0x40 == 0 {
				t.Fatalf("BFloat16(NaN %#x) = %#04x is no quiet NaN", math.Float32bits(x), got)
			}
		case math.IsInf(float64(x), 0):
			if fromBFloat16(got) != x {
				t.Fatalf("BFloat16(%g) = %#04x", x, got)
			}
		default:
			if want := nearestBFloat16(x); got != want {
				t.Fatalf("BFloat16(%g = %#x) = %#04x, want %#04x", x, math.Float32bits(x), got, want)
			}
		}
	}
}

// A float64 just above or below a tie must not be rounded twice.
func TestFrom64RoundsOnce(t *testing.T) {
	check := func(x float64) {
		t.Helper()
		if got, want := uint16(BFloat16From64(x)), exact(x, 8, -133, 128, fromBFloat16, 0x7f80); got != want {
			t.Errorf("BFloat16From64(%v) = %#04x, want %#04x", x, got, want)
		}
		if got, want := uint16(Float16From64(x)), exact(x, 11, -24, 16, fromFloat16, 0x7c00); got != want {
			t.Errorf("Float16From64(%v) = %#04x, want %#04x", x, got, want)
		}
	}
	for _, x := range []float64{
		0, math.Copysign(0, -1), 1, -1, 65504, 65519.999999999, 65520, 65520.0000001, -65520, 1e300, -1e300, 1e-300,
		math.MaxFloat32, math.SmallestNonzeroFloat32, math.Ldexp(1, -25), math.Ldexp(1+1e-12, -25), math.Ldexp(1, -134),
		1 + math.Ldexp(1, -8), 1 + math.Ldexp(1, -8) + math.Ldexp(1, -50), 1 + math.Ldexp(3, -8) - math.Ldexp(1, -50),
		1 + math.Ldexp(1, -11), 1 + math.Ldexp(1, -11) + math.Ldexp(1, -50), 1 + math.Ldexp(3, -11) - math.Ldexp(1, -50),
		math.Inf(1), math.Inf(-1),
	} {
		check(x)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		x := math.Ldexp(random.Float64()*2-1, random.IntN(60)-35)
		check(x)
		// On a tie of each type, and one float64 beside it.
		tie := float64(fromFloat16(uint16(random.IntN(0x7bff)))+fromFloat16(uint16(random.IntN(2)))) + math.Ldexp(1, random.IntN(40)-30)
		check(tie)
		check(math.Nextafter(tie, math.Inf(1)))
		check(math.Nextafter(tie, 0))
	}
	if h := uint16(BFloat16From64(math.NaN())); fromBFloat16(h) == fromBFloat16(h) {
		t.Errorf("NaN becomes %#04x", h)
	}
}

// exact rounds with big.Float: `bits` of precision, the smallest subnormal 2^least, infinity from 2^limit on.
func exact(x float64, bits uint, least, limit int, value func(uint16) float32, infinity uint16) uint16 {
	sign := uint16(0)
	if math.Signbit(x) {
		sign = 0x8000
	}
	if math.IsInf(x, 0) {
		return sign | infinity
	}
	a := math.Abs(x)
	if a == 0 {
		return sign
	}
	_, exponent := math.Frexp(a)
	unit := max(exponent-int(bits), least) // the last place is 2^unit
	scaled := new(big.Float).SetMantExp(big.NewFloat(a), -unit)
	whole, _ := scaled.Int(nil)
	rest, _ := new(big.Float).Sub(scaled, new(big.Float).SetInt(whole)).Float64()
	if rest > 0.5 || rest == 0.5 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	rounded := math.Ldexp(float64(whole.Int64()), unit)
	if rounded >= math.Ldexp(1, limit) {
		return sign | infinity
	}
	// Values of the type grow with their bits, so the bits are found by halving.
	low, high := uint16(0), infinity
	for low < high {
		middle := (low + high) / 2
		if float64(value(middle)) < rounded {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return sign | low
}

// The functions by bits.
func toBFloat16(x float32) uint16   { return uint16(ToBFloat16(x)) }
func toFloat16(x float32) uint16    { return uint16(ToFloat16(x)) }
func fromBFloat16(h uint16) float32 { return BFloat16(h).Float32() }
func fromFloat16(h uint16) float32  { return Float16(h).Float32() }

// Slices are converted like single elements, as far as both go.
func TestSlices(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, lengths := range [][2]int{{0, 3}, {3, 0}, {100, 100}, {7, 9}, {9, 7}} {
		src := make([]float32, lengths[1])
		for i := range src {
			src[i] = float32(random.NormFloat64())
		}
		b, h, back := make([]BFloat16, lengths[0]), make([]Float16, lengths[0]), make([]float32, lengths[1])
		n := min(lengths[0], lengths[1])
		if Encode(b, src) != n || Encode(h, src) != n {
			t.Fatalf("%v: not %d elements", lengths, n)
		}
		for i, x := range src[:n] {
			if b[i] != ToBFloat16(x) || h[i] != ToFloat16(x) {
				t.Errorf("%g is %#04x and %#04x", x, b[i], h[i])
			}
		}
		if Decode(back, b) != n || n > 0 && back[n-1] != b[n-1].Float32() {
			t.Errorf("%v: %v of %v", lengths, back, b)
		}
		if Decode(back, h) != n || n > 0 && back[n-1] != h[n-1].Float32() {
			t.Errorf("%v: %v of %v", lengths, back, h)
		}
	}
}

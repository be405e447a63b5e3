// SPDX-License-Identifier: Apache-2.0

package half

import (
	"math"
	"testing"
)

// Every code is (-1)^s 2^(e-7) (1 + f/8), or with e = 0 (-1)^s 2^-6 f/8, but for the two NaNs; and comes back.
func TestFloat8E4M3OfEveryCode(t *testing.T) {
	for code := range 256 {
		e, f := code>>3&15, float64(code&7)
		want := math.Ldexp(1+f/8, e-7)
		if e == 0 {
			want = math.Ldexp(f/8, -6)
		}
		if code&0x80 != 0 {
			want = -want
		}
		got := Float8E4M3(code).Float32()
		if code&0x7f == 0x7f {
			if got == got || ToFloat8E4M3(got) != Float8E4M3(code) {
				t.Errorf("%#02x is %v and comes back as %#02x", code, got, ToFloat8E4M3(got))
			}
			continue
		}
		if float64(got) != want || math.Signbit(float64(got)) != (code&0x80 != 0) {
			t.Errorf("%#02x is %v, want %v", code, got, want)
		}
		if back := ToFloat8E4M3(got); back != Float8E4M3(code) {
			t.Errorf("%#02x comes back as %#02x", code, back)
		}
	}
	if v := Float8E4M3(0x7e).Float32(); v != 448 {
		t.Errorf("the largest is %v", v)
	}
}

// nearestFloat8E4M3 searches the codes, whose values grow with them.
func nearestFloat8E4M3(x float64) Float8E4M3 {
	sign := Float8E4M3(0)
	if math.Signbit(x) {
		sign = 0x80
	}
	x = math.Abs(x)
	best := Float8E4M3(0)
	for code := Float8E4M3(1); code < 0x7f; code++ {
		before, now := math.Abs(float64(best.Float32())-x), math.Abs(float64(code.Float32())-x)
		if now < before || now == before && code&1 == 0 {
			best = code
		}
	}
	return sign | best
}

// Ties, and what is just above and below each.
func TestFloat8E4M3Rounds(t *testing.T) {
	check := func(x float64) {
		t.Helper()
		if got, want := Float8E4M3From64(x), nearestFloat8E4M3(x); got != want {
			t.Errorf("Float8E4M3From64(%v) = %#02x, want %#02x", x, got, want)
		}
		f := float32(x)
		if got, want := ToFloat8E4M3(f), nearestFloat8E4M3(float64(f)); got != want {
			t.Errorf("ToFloat8E4M3(%v) = %#02x, want %#02x", f, got, want)
		}
	}
	for code := Float8E4M3(0); code < 0x7e; code++ {
		tie := (float64(code.Float32()) + float64((code + 1).Float32())) / 2
		for _, x := range []float64{tie, math.Nextafter(tie, 0), math.Nextafter(tie, 1e3), float64(math.Nextafter32(float32(tie), 0)), float64(math.Nextafter32(float32(tie), 1e3))} {
			check(x)
			check(-x)
		}
	}
	for _, x := range []float64{0, math.Copysign(0, -1), 1e-300, 0x1p-10, 448, 449, 464, 465, 480, 1e9, math.MaxFloat32, math.MaxFloat64} {
		check(x)
		check(-x)
	}
	// Saturated, as where GPUs convert.
	for _, sign := range []int{1, -1} {
		inf := math.Inf(sign)
		if got, want := ToFloat8E4M3(float32(inf)), nearestFloat8E4M3(float64(sign)*448); got != want || Float8E4M3From64(inf) != want {
			t.Errorf("%v becomes %#02x, want %#02x", inf, got, want)
		}
	}
	if h := Float8E4M3From64(math.NaN()); h&0x7f != 0x7f {
		t.Errorf("NaN becomes %#02x", h)
	}
}

func TestFloat8E4M3Slices(t *testing.T) {
	from := []float32{0.3, -500, 17, 1}
	to, back := make([]Float8E4M3, 3), make([]float32, 5)
	if n, m := Encode(to, from), Decode(back, to); n != 3 || m != 3 {
		t.Errorf("%d and %d elements were converted", n, m)
	}
	for i, x := range to {
		if x != ToFloat8E4M3(from[i]) || back[i] != x.Float32() {
			t.Errorf("%v becomes %#02x and %v", from[i], x, back[i])
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Every NaN is found, of either sign, and infinities are none.
func TestFirstNaN(t *testing.T) {
	for _, nan := range []uint16{0x7f81, 0x7fff, 0xff81, 0xffff} {
		if got := firstNaN([]sparsek.BFloat16{0, 0x7f80, 0xff80, 0x8000, sparsek.BFloat16(nan), 0}); got != 4 {
			t.Errorf("bfloat16 %#x: found at %d", nan, got)
		}
	}
	for _, nan := range []uint16{0x7c01, 0x7fff, 0xfc01, 0xffff} {
		if got := firstNaN([]sparsek.Float16{0, 0x7c00, 0xfc00, 0x8000, sparsek.Float16(nan), 0}); got != 4 {
			t.Errorf("float16 %#x: found at %d", nan, got)
		}
	}
	for _, nan := range []uint32{0x7f800001, 0xffffffff} {
		if got := firstNaN([]float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(nan)}); got != 3 {
			t.Errorf("float32 %#x: found at %d", nan, got)
		}
	}
	if got := firstNaN([]float32{1, 2}); got != -1 {
		t.Errorf("no NaN: found at %d", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package half_test

import (
	"fmt"

	"github.com/sparsek/sparsek/wrapper/half"
)

func ExampleEncode() {
	weights := []float32{1, 0.1, -3.14159, 1e6}
	stored := make([]half.Float16, len(weights))
	half.Encode(stored, weights)
	back := make([]float32, len(stored))
	half.Decode(back, stored)
	fmt.Println(back)
	// Output:
	// [1 0.099975586 -3.140625 +Inf]
}

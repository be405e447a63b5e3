// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"

	"github.com/sparsek/sparsek/internal/bench/workload"
)

// nonFiniteSuite are products of every family of kernels on a GPU, most of that which multiplies absent blocks as zeros.
func nonFiniteSuite(Settings) []Case {
	list := []Case{
		cube("b8-random", 8192, 8, 8, "random", eighth, Reach{}),
		cube("b16-random", 8192, 16, 16, "random", eighth, Reach{}),
		cube("b16-window", 8192, 16, 16, "window", eighth, Reach{}),
		cube("b32-random", 8192, 32, 32, "random", eighth, Reach{}),
		cube("b32-window", 8192, 32, 32, "window", eighth, Reach{}),
		cube("b48-random", 8192, 48, 48, "random", eighth, Reach{}),
		cube("b64-random", 8192, 64, 64, "random", eighth, Reach{}),
		narrow("decode-16", 16, Reach{}, Reach{}),
		cube("fp32-64", 2048, 64, 64, "random", eighth, Reach{}),
		cube("fp32-32", 2048, 32, 32, "random", eighth, Reach{}),
	}
	for i := range list {
		list[i].Graph = false
		if strings.HasPrefix(list[i].Name, "fp32") {
			list[i].DType = workload.Float32.Name
		}
	}
	return list
}

// SPDX-License-Identifier: Apache-2.0

package bench

// heldCounts are the SMs that another kernel holds, beside none: one, some, and as many as a communication library takes.
var heldCounts = []int{1, 4, 16}

// sharedSuite are products on a GPU whose SMs are not all theirs.
func sharedSuite(Settings) []Case {
	list := []Case{
		cube("b128-random", 8192, 128, 128, "random", eighth, Reach{}),
		cube("b64-random", 8192, 64, 64, "random", eighth, Reach{}),
		cube("b128-random-50", 8192, 128, 128, "random", 0.5, Reach{}),
	}
	for i := range list {
		list[i].Held = heldCounts
	}
	return list
}

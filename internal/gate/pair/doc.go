// SPDX-License-Identifier: Apache-2.0

// Package pair times two builds of the library against each other, in one process, on one GPU, with the same operands:
// their products take turns, so that clocks, power, caches and other users of the GPU are the same for both. What
// depends on where things lie in memory is made anew for each round, in another order.
package pair

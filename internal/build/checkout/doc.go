// SPDX-License-Identifier: Apache-2.0

// Package checkout knows which files of a checkout are sources, which commit
// they are, and copies them elsewhere such that the copy still knows it.
package checkout

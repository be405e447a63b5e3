// SPDX-License-Identifier: Apache-2.0

// Package check is what `mage test` asks of the Go side of the tree: that it
// is formatted, that vet and staticcheck find nothing, that its tests pass.
package check

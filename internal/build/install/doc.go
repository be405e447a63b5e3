// SPDX-License-Identifier: Apache-2.0

// Package install puts what was built under a prefix, where other programs
// find it.
package install

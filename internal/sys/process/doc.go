// SPDX-License-Identifier: Apache-2.0

// Package process runs a program under a context.
//
// Each program gets its own process group, so that a cancelled context ends
// it together with everything that it started: a compiler driver's passes, a
// test's helpers. Arguments are passed unchanged, without a shell or variable
// expansion.
package process

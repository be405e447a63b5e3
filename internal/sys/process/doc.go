// SPDX-License-Identifier: Apache-2.0

// Package process runs a program under a context.
//
// Each program gets a process group of its own, so that a cancelled context
// ends it together with everything that it started: a compiler driver's
// passes, a test's helpers. Arguments are passed as they are; no shell and no
// variable expansion stand in between.
package process

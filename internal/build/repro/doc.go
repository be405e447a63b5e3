// SPDX-License-Identifier: Apache-2.0

// Package repro builds the library twice, from copies of the sources that
// differ in all that must not matter, and compares the results byte for byte.
package repro

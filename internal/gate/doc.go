// SPDX-License-Identifier: Apache-2.0

// Package gate keeps a slower kernel from landing unnoticed. It judges the times of products that took turns with those of
// the blessed library, or compares a profile of the suite gate with a baseline in ci/baseline/, which is made by
// blessing a profile. docs/gate.md describes files and rules.
package gate

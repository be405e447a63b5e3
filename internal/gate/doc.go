// SPDX-License-Identifier: Apache-2.0

// Package gate keeps a slower kernel from landing unnoticed. It compares a profile of the roofline suite with a
// baseline in ci/baseline/, which is made by blessing a profile, and judges. docs/gate.md describes files and rule.
package gate

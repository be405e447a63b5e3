// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

// Package foreign is empty without cgo: package native says what is missing.
package foreign

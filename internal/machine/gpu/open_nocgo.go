// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package gpu

// Open returns ErrNoCGO.
func Open(string, ...string) (file string, err error) { return "", ErrNoCGO }

// Query returns ErrNoCGO.
func Query() (Driver, error) { return Driver{}, ErrNoCGO }

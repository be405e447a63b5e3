// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package gpu

// Open would try to open a library.
func Open(string, ...string) (file string, err error) { return "", ErrNoCGO }

// Query would ask the driver.
func Query() (Driver, error) { return Driver{}, ErrNoCGO }

// SPDX-License-Identifier: Apache-2.0

// Package gpu asks NVIDIA's driver, opened at run time, for the GPUs, and tries
// to open libraries as the program that uses them would. Without cgo nothing
// can be opened, and every call returns ErrNoCGO.
package gpu

import "errors"

// ErrNoCGO means that this program was built without cgo.
var ErrNoCGO = errors.New("this program was built without cgo and cannot open libraries")

// ErrNoDriver means that the loader finds no libcuda.so.1.
var ErrNoDriver = errors.New("the loader finds no libcuda.so.1")

// Driver describes the user-space part of NVIDIA's driver.
type Driver struct {
	Library string   `json:"library"` // file of libcuda
	CUDA    int      `json:"cuda"`    // newest CUDA that it supports, 13000 for 13.0
	Devices []Device `json:"devices"`
}

// Device is one GPU.
type Device struct {
	Name  string `json:"name"`
	Major int    `json:"major"` // compute capability
	Minor int    `json:"minor"`
	// Bytes a second that the clock and the width of the device memory's bus allow; 0 where the driver does not report it.
	MemoryRate float64 `json:"memory_bytes_per_second,omitempty"`
}

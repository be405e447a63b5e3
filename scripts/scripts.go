// SPDX-License-Identifier: Apache-2.0

// Package scripts holds the scripts that the program runs.
package scripts

import _ "embed"

// TorchBSR is a program for python3 that times torch's products: what it reads and prints it says itself.
//
//go:embed torch_bsr.py
var TorchBSR string

// SPDX-License-Identifier: Apache-2.0

// Package kernels reads kernels.json, the one list of CUDA kernels, and
// generates from it what the compiler needs: one instantiation file a kernel
// and the registry that the library finds them in.
package kernels

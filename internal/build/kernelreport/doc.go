// SPDX-License-Identifier: Apache-2.0

// Package kernelreport is what a build tells of its kernels: registers, spills,
// shared memory, stages and machine instructions, in build/report.
package kernelreport

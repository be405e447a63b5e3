// SPDX-License-Identifier: Apache-2.0

// Package kernelreport is a build's report on its kernels: registers, spills,
// shared memory, stages and machine instructions, in build/report.
package kernelreport

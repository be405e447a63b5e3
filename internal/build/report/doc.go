// SPDX-License-Identifier: Apache-2.0

// Package report is what a build tells of its kernels: registers, spills,
// shared memory, stages and machine instructions, in build/report.
package report

// SPDX-License-Identifier: Apache-2.0

// Package sass shows what the CUDA assembler made of a kernel: the machine
// instructions (SASS) that cuobjdump shows, and the registers, spills, stack
// and static shared memory that ptxas reports.
package sass

// SPDX-License-Identifier: Apache-2.0

// Package sparsek multiplies block-sparse matrices by dense ones, C = act(alpha A B + beta C + bias), on NVIDIA Hopper
// GPUs and, where there is none, on the CPU.
//
// A is in block compressed sparse row format ([BSR]); B and C are row-major ([Dense] in host memory, [DeviceDense] in
// the back-end's). Elements are [BFloat16], [Float16] or float32; sums are kept in float32. C may be of another type than
// A and B, and there may be a bias and an activation: see [PlanOptions].
//
// The steps to a product: an [Engine] is a back-end; a [Matrix] is A in it, its index checked; a [Plan] is how its
// pattern is multiplied, made once; [Plan.Multiply] does it, as often as wanted and also with new values
// ([SetValues]). [Plan.Enqueue] does it in a [Stream], without waiting; [DeviceBuffer.Pointer], [BufferAt] and
// [Engine.StreamAt] share memory and streams with other CUDA libraries. Everything is closed by Close, in any order;
// what is dropped without it is freed some time after. Use after Close returns [ErrClosed].
//
// A plan's kernel is the one that was the fastest when a similar product was measured, or else the one that a cost model
// predicts to be. [PlanOptions].Tuning has the kernels measured, where no such measurement is known, and remembers the
// result for this process and those after it.
//
// The work is done by libsparsek.so, which is opened at run time: [Open] says where it is looked for. A program is built
// with cgo and a C compiler, and without the library.
//
// Packages beside this one: bsr makes block-sparse matrices, matio reads files, half converts numbers (these three need
// no cgo); tuning chooses kernels step by step, check compares a result with float64, timing times products.
//
// Everything may be used from several goroutines at once. Two products that write the same C at once are a race, as
// is changing an operand, or values that the CPU back-end refers to, during a product.
//
// A failed call returns an [*Error]; its [Status] is found by errors.Is:
//
//	if errors.Is(err, sparsek.ErrNoDevice) { ... }
package sparsek

// SPDX-License-Identifier: Apache-2.0

// Package sparsek multiplies block-sparse matrices by dense ones, C = act(alpha A B + beta C + bias), on NVIDIA Hopper
// GPUs and, where there is none, on the CPU.
//
// A is in block compressed sparse row format ([BSR]), B and C are row-major ([Dense] in host memory, [DeviceDense] in
// the back-end's). Elements are [BFloat16], [Float16] or float32; sums are kept in float32. C may be of another type than
// A and B, and there may be a bias and an activation: [PlanOptions] say so.
//
// The way to a product: a [Engine] is a back-end; a [Matrix] is A in it, its index checked; a [Plan] is how its
// pattern is multiplied, made once; [Plan.Multiply] does it, as often as wanted and also with new values
// ([Matrix.SetValues]). Whatever is made is closed by Close, in any order; what is dropped without it is freed some
// time after. Use after Close returns [ErrClosed].
//
// A plan's kernel is the one that was the fastest when a like product was measured, or else the one that a cost model
// expects to be. [WithTuning] has the kernels measured now, where no such measurement is known, and remembers the result
// for this process and those after it.
//
// The work is done by libsparsek.so, which is opened at run time: [Open] says where it is looked for. Building needs
// no native library.
//
// Everything may be used from several goroutines at once. Two products that write the same C at once are a race, as
// is changing an operand, or values that the CPU back-end refers to, during a product.
//
// A failed call returns an [*Error]; its [Status] is found by errors.Is:
//
//	if errors.Is(err, sparsek.ErrNoDevice) { ... }
package sparsek

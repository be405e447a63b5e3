// SPDX-License-Identifier: Apache-2.0

// Package bridge is how the packages beside sparsek (check, timing, tuning) reach what sparsek does not export: it sets
// these functions, which take its types as any since this package cannot import it.
package bridge

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Use is what a call has in use: plans, the values of their matrices, operands and a stream. End, which waits for the
// stream, must be called once.
type Use struct {
	Native *native.Library
	OnGPU  bool
	Stream uintptr
	Plans  []Plan
	// Addresses of operand set i, for each plan the same. Bias and X are 0 for a plan without one.
	X, B, C, Bias native.Addresses
	End           func()
}

// Plan is a native plan with its strides.
type Plan struct {
	Pointer  unsafe.Pointer
	LDB, LDC int
}

// AttentionUse is what a call has in use: an attention, sets of operands and a stream. End, which waits for the stream,
// must be called once.
type AttentionUse struct {
	Native  *native.Library
	Pointer unsafe.Pointer
	Args    []native.AttentionArgs // a set each, with the stream
	End     func()
}

// Tuner is a native tuner of a matrix.
type Tuner interface {
	// Step measures a candidate and gives its index, -1 where there is nothing left to do.
	Step(ctx context.Context) (int, error)
	Candidates() ([]native.Candidate, error)
	// Finish gives a *sparsek.Plan.
	Finish() (plan any, err error)
	Close()
}

// Host is a dense matrix in host memory.
type Host struct {
	native.Operand
	Rows, Cols int
	DType      int32
	Order      int32
}

// Engine is an engine in use by a call that has operands in its memory. End must be called once.
type Engine struct {
	Native  *native.Library
	Context unsafe.Pointer
	// Take takes a sparsek.Operand into use, which must be of rows x cols, without gaps, and in a buffer of the engine.
	Take func(name string, operand any, rows, cols int) (address uintptr, err error)
	// InStream enqueues work in a stream of its own and waits for it.
	InStream func(enqueue func(stream uintptr) error) error
	End      func()
}

// Set by package sparsek.
var (
	// Library is the native one of a *sparsek.Library.
	Library func(lib any) *native.Library
	// BSR is that of a *sparsek.BSR whose arrays are as long as its sizes say. They stay the caller's.
	BSR func(op string, a any) (native.BSR, error)
	// Attention is a *sparsek.BSR, which may be nil, with sparsek.AttentionOptions and sparsek.AttentionOperands in host memory,
	// which is pinned.
	Attention func(op string, layout, options, operands any, backward bool, pins *runtime.Pinner) (native.AttentionOptions, native.AttentionArgs, error)
	// MaskSizes are the elements of the index and of the bits of a mask with so many blocks.
	MaskSizes func(options any, raw native.AttentionOptions, masked int) (index, bits int)
	// Begin takes a []*sparsek.Plan of one engine and a []sparsek.Operands into use.
	Begin func(ctx context.Context, op string, plans, operands any) (*Use, error)
	// BeginAttention takes a *sparsek.Attention and a []sparsek.AttentionOperands into use.
	BeginAttention func(ctx context.Context, op string, attention, operands any, backward bool) (*AttentionUse, error)
	// BeginEngine takes a *sparsek.Engine into use.
	BeginEngine func(ctx context.Context, op string, engine any) (*Engine, error)
	// HostOperand is a sparsek.Operand in host memory, of rows x cols and that stride (-1: any). It is given, its DType
	// above 0, also where it is of another size.
	HostOperand func(op, name string, operand any, rows, cols, stride int) (Host, error)
	// HostBias is a sparsek.Operand in host memory that is a bias of that kind for a C of rows x cols.
	HostBias func(op string, operand any, kind int32, rows, cols int) (Host, error)
	// NewTuner makes a tuner of a *sparsek.Matrix for sparsek.PlanOptions.
	NewTuner func(ctx context.Context, matrix, options any, tuning native.TunerOptions) (Tuner, error)
)

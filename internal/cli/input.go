// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// patternSpec is a problem made from a pattern by name.
type patternSpec struct {
	name    string
	size    sizeFlag
	block   blockFlag
	density float64
	seed    uint64
	output  int // bytes of an element of C
	op      sparsek.Op
}

// generate makes A and, unless b is given, B.
func generate[T sparsek.Element](s patternSpec, e workload.Element[T], b *matio.Dense[T]) (*workload.Problem[T], error) {
	blockRows, blockCols := (s.size.m+s.block.m-1)/s.block.m, (s.size.k+s.block.k-1)/s.block.k
	spec := pattern.Spec{
		Name: s.name, BlockRows: blockRows, BlockCols: blockCols, Density: s.density, Seed: workload.PatternSeed(s.seed),
	}
	blocks, err := spec.Blocks() // predicted: nothing is made before it is known to fit
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	stored := blocks * float64(s.block.m) * float64(s.block.k)
	index := workload.IndexBytes(float64(blockRows)+float64(blockCols), blocks)
	if err := checkProductMemory(index, stored, s.size, e.Size, s.output); err != nil {
		return nil, err
	}
	p, err := pattern.Generate(spec)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	problem := &workload.Problem[T]{Alpha: 1, A: workload.RandomA[T](p, s.size.m, s.size.k, s.block.m, s.block.k, s.seed)}
	if b != nil {
		problem.B = *b
	} else {
		extent := workload.Form{Op: s.op}.ExtentB(workload.Shape{M: s.size.m, N: s.size.n, K: s.size.k})
		problem.B = workload.RandomB[T](extent.Rows, extent.Cols, s.seed)
	}
	return problem, nil
}

// checkProductMemory counts the operands on the host, with index bytes for the index of A. element and output are the bytes of one of A and B, and of C.
func checkProductMemory(index, stored float64, size sizeFlag, element, output int) error {
	bytes := float64(element)
	return checkMemory(availableMemory(),
		need{"the blocks of A", stored * bytes},
		need{"their index", index},
		need{"B", float64(size.k) * float64(size.n) * bytes},
		need{"C and a copy", 2 * float64(size.m) * float64(size.n) * float64(output)})
}

// input is the problem of a run, and what the report says about its source.
type input[T, C sparsek.Element] struct {
	problem  *workload.Problem[T]
	epilogue workload.Epilogue[C]
	fill     *fill
	over     overflow
	strange  int64 // values of A and B that are infinite or NaN in their files
}

// load makes the problem that the flags of run ask for.
func load[T, C sparsek.Element](ctx context.Context, o *productFlags, from operandFlags, e workload.Element[T], out workload.Element[C]) (*input[T, C], error) {
	in := &input[T, C]{}
	var b *matio.Dense[T]
	if from.B != "" {
		var count atomic.Int64
		read, err := matio.ReadDense(from.B, countNotFinite(&in.strange, e.CountOverflow(&count)))
		if err != nil {
			return nil, fail(exitBadFile, err)
		}
		b, in.over.B = &read, count.Load()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	if o.Matrix != "" {
		err = in.fromFile(ctx, o, e, from.B, b, out.Size)
	} else {
		err = in.fromPattern(o, e, from.B, b, out.Size)
	}
	if err != nil {
		return nil, err
	}
	p := in.problem
	p.Alpha = float32(from.Alpha)
	p.Form = workload.Form{Op: o.Op.Op, OrderX: o.ColumnMajor.x, OrderB: o.ColumnMajor.b, OrderC: o.ColumnMajor.c}
	if p.Op == sparsek.SDD {
		p.X = workload.RandomX[T](p.A.Rows, p.B.Rows, o.Seed)
	}
	if o.narrows() {
		in.over.A += p.NarrowA(dtypeOf(o.ADType))
	}
	rows, cols := p.ExtentC()
	in.epilogue, in.over.Bias, err = newEpilogue(&o.epilogueFlags, from.BiasFile, out, rows, cols, o.Seed)
	if err != nil {
		return nil, err
	}
	if in.over.A > 0 && o.narrows() && !o.AllowOverflow {
		return nil, failf(exitOverflow, "%d values of A are too large for %s and would become infinite: choose another --a-dtype, scale them, or give --allow-overflow",
			in.over.A, o.ADType)
	}
	if in.over.A+in.over.B > 0 && !o.AllowOverflow {
		return nil, failf(exitOverflow, "%d values of A and %d of B are too large for %s and would become infinite: choose another --dtype, scale them, or give --allow-overflow",
			in.over.A, in.over.B, e.Name)
	}
	if in.over.Bias > 0 && !o.AllowOverflow {
		return nil, failf(exitOverflow, "%d values of the bias are too large for %s and would become infinite: choose another --out-dtype, scale them, or give --allow-overflow",
			in.over.Bias, out.Name)
	}
	return in, nil
}

func (in *input[T, C]) fromPattern(o *productFlags, e workload.Element[T], bPath string, b *matio.Dense[T], output int) error {
	if err := fits(b, bPath, o.Op.Op, *o.Size); err != nil {
		return err
	}
	problem, err := generate(patternSpec{o.Pattern, *o.Size, blockOf(o.Block, nil), o.value(defaultDensity), o.Seed, output, o.Op.Op}, e, b)
	in.problem = problem
	return err
}

func (in *input[T, C]) fromFile(ctx context.Context, o *productFlags, e workload.Element[T], bPath string, b *matio.Dense[T], output int) error {
	entries, err := matio.ReadSparse(o.Matrix)
	if err != nil {
		return fail(exitBadFile, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	size, err := sizeOf(o, entries, bPath, b)
	if err != nil {
		return err
	}
	for _, v := range entries.Value {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			in.strange++
		}
	}
	block := blockOf(o.Block, entries)
	if o.Block.auto {
		if block.m, block.k, err = bsr.BestSize(ctx, entries); err != nil {
			return err
		}
	}
	// Beside the elements an index takes a few words for each block row; checked first, as a file of a few bytes may
	// claim any number of rows.
	rows := float64(entries.Rows)/float64(block.m) + 1
	cols := float64(entries.Cols)/float64(block.k) + 1
	if err := checkMemory(availableMemory(), need{"the index of A", 32*rows + 16*float64(len(entries.Value))},
		need{"C", float64(size.m) * float64(size.n) * float64(output)}); err != nil {
		return err
	}
	blocking, err := bsr.Block(entries, block.m, block.k)
	if err != nil {
		return failf(exitBadSizes, "%s: %w", o.Matrix, err)
	}
	stored := float64(blocking.Pattern.Blocks()) * float64(block.m) * float64(block.k)
	if err := checkProductMemory(workload.IndexBytes(rows+cols, float64(blocking.Pattern.Blocks())), stored, size, e.Size, output); err != nil {
		return fmt.Errorf("%s in blocks of %s (%d elements, %.3g stored): %w", o.Matrix, &block, len(entries.Value), stored, err)
	}
	var count atomic.Int64
	a, cost, err := bsr.Values(blocking, e.CountOverflow(&count))
	if err != nil {
		return failf(exitBadSizes, "%s: %w", o.Matrix, err)
	}
	in.over.A = count.Load()
	in.fill = &fill{cost.Nonzeros, cost.Stored, cost.Ratio()}
	in.problem = &workload.Problem[T]{A: a}
	if b != nil {
		in.problem.B = *b
	} else {
		extent := workload.Form{Op: o.Op.Op}.ExtentB(workload.Shape{M: size.m, N: size.n, K: size.k})
		in.problem.B = workload.RandomB[T](extent.Rows, extent.Cols, o.Seed)
	}
	return nil
}

// countNotFinite counts infinite values and NaN before convert; a file is converted by one goroutine.
func countNotFinite[T any](count *int64, convert func(float64) T) func(float64) T {
	return func(v float64) T {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			*count++
		}
		return convert(v)
	}
}

// blockOf is the block size that was asked for, or else that of the file, or else the default.
func blockOf(asked anyBlockFlag, file *bsr.Entries) blockFlag {
	switch {
	case asked.blockFlag != blockFlag{}:
		return asked.blockFlag
	case file != nil && file.BlockM > 0:
		return blockFlag{file.BlockM, file.BlockK}
	}
	return defaultBlock
}

// sizeOf is MxNxK of a matrix from a file, held against --size and B.
func sizeOf[T sparsek.Element](o *productFlags, a *bsr.Entries, bPath string, b *matio.Dense[T]) (sizeFlag, error) {
	size := sizeFlag{a.Rows, int(o.N), a.Cols}
	switch {
	case o.Size != nil:
		if size.n = o.Size.n; size != *o.Size {
			return size, failf(exitBadSizes, "%s: the matrix is %d x %d, and --size %s says %d x %d", o.Matrix, a.Rows, a.Cols, o.Size, o.Size.m, o.Size.k)
		}
	case b != nil:
		size.n = b.Cols
		if op := o.Op.Op; op == sparsek.DDS || op == sparsek.DDST || op == sparsek.SDD {
			size.n = b.Rows
		}
	}
	return size, fits(b, bPath, o.Op.Op, size)
}

// fits makes sure that a B from a file has the size that is needed.
func fits[T sparsek.Element](b *matio.Dense[T], path string, op sparsek.Op, size sizeFlag) error {
	extent := workload.Form{Op: op}.ExtentB(workload.Shape{M: size.m, N: size.n, K: size.k})
	if b != nil && (b.Rows != extent.Rows || b.Cols != extent.Cols) {
		return failf(exitBadSizes, "%s: B is %d x %d, and %d x %d is needed", path, b.Rows, b.Cols, extent.Rows, extent.Cols)
	}
	return nil
}

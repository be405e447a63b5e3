// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// torchScript is a program for python3 that times torch's products.
//
//go:embed torch_bsr.py
var torchScript string

// scipyScript is one that times SciPy's.
//
//go:embed scipy_sparse.py
var scipyScript string

func newTorchProcess() pythonProcess {
	return pythonProcess{peer: Torch, script: torchScript, install: "install torch for the python3 on PATH",
		served: "choose blocks, sizes and a type that torch takes"}
}

func newSciPyProcess() pythonProcess {
	return pythonProcess{peer: SciPy, script: scipyScript, install: "install scipy for the python3 on PATH",
		served: "choose --dtype fp32 or fp64, and sizes that are multiples of the block"}
}

// inPython is the sparse product of a package of Python's, in a process of python3 that takes its turns: torch's own
// block-sparse product, or SciPy's.
type inPython[T sparsek.Element] struct{ process *pythonProcess }

func (p inPython[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	t := p.process
	if t.peer == SciPy && s.engine.Info().Backend != sparsek.CPU {
		return nil, &missing{SciPy, "it computes on the CPU, and this is a GPU", "choose --device cpu, or compare with " + CUSPARSE}
	}
	if err := t.start(ctx, s.engine.Info()); err != nil {
		return nil, err
	}
	spec := pythonCase{
		Op: s.form.Op.String(), M: s.shape.M, N: s.shape.N, K: s.shape.K, BlockM: s.a.BlockM, BlockK: s.a.BlockK, DType: s.element.Name,
		RowPtr: s.a.RowPtr, ColIdx: s.a.ColIdx, Copies: max(s.copies, workload.SetCount),
	}
	entry, err := t.prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	e := entrant{name: t.peer, kernel: fmt.Sprintf("%s %s, %s", t.peer, t.version, entry), time: t.time}
	if err := tryOnce(ctx, &e, t.served); err != nil {
		return nil, err
	}
	return []entrant{e}, nil
}

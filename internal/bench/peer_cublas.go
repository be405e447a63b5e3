// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// cublas is the dense product by cuBLAS: of the same matrix with its zeros and, in 16 bits, of a matrix without zeros. Of
// products other than A B it is only the latter, of the size that computes the same.
type cublas[T sparsek.Element] struct{}

const fixCUBLAS = "install cuBLAS, or name it by SPARSEK_CUBLAS: sparsek doctor says more"

func (cublas[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	if s.engine.Info().Backend != sparsek.CUDA {
		return nil, &missing{CUBLAS, "it computes on a GPU, and this is the CPU", "use a GPU, or compare with " + OpenBLAS}
	}
	if !s.dense {
		return nil, tooLarge(CUBLAS)
	}
	full := entrant{name: CUBLASFull, kernel: "cuBLAS GEMM, a matrix without zeros", dense: true, full: true, repeats: fullPerRound}
	switch s := any(s).(type) {
	case *subject[sparsek.BFloat16]:
		full.time = timeFull(s)
	case *subject[sparsek.Float16]:
		full.time = timeFull(s)
	}
	if s.form.Op != sparsek.DSD {
		if full.time == nil {
			return nil, &missing{CUBLAS, "it is timed in 16 bits beside products other than A B", "choose --dtype bf16 or fp16"}
		}
		return []entrant{full}, tryOnce(ctx, &full, fixCUBLAS)
	}
	same, err := byKernel[T]{library: "cuBLAS"}.enterOne(ctx, s, "cublas_dense", s.denseCopies)
	if err != nil {
		var m *missing
		if errors.As(err, &m) {
			m.peer = CUBLAS
		}
		return nil, err
	}
	same.name, same.kernel, same.dense = CUBLAS, "cuBLAS GEMM, A with its zeros", true
	if full.time == nil { // it is timed in 16 bits
		return []entrant{same}, nil
	}
	if err := tryOnce(ctx, &full, fixCUBLAS); err != nil {
		return []entrant{same}, err
	}
	return []entrant{same, full}, nil
}

// timeFull times dense products of random matrices without zeros.
func timeFull[T sparsek.BFloat16 | sparsek.Float16](s *subject[T]) func(context.Context, int) ([]time.Duration, error) {
	operands := workload.DenseOperands(s.sets, s.form.Dense(s.shape))
	return func(ctx context.Context, repeats int) ([]time.Duration, error) {
		return timing.Dense(ctx, s.engine, timing.DenseOptions[T]{Operands: operands, Warmup: 1, Repeats: repeats})
	}
}

// tooLarge is a dense peer of a matrix that would be too large as a dense one.
func tooLarge(peer string) error {
	return &missing{peer, "a dense A of this size would take too much memory", "compare smaller matrices"}
}

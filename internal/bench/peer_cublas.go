// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// cublas is the dense product of the full size, by cuBLAS.
type cublas[T sparsek.Element] struct{}

// MendCUBLAS is what to do where cuBLAS is not there.
const MendCUBLAS = "install cuBLAS, or name it by SPARSEK_CUBLAS: sparsek doctor says more"

// densePerRound is how many dense products are timed in a round.
const densePerRound = 4

func (cublas[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	if s.context.Info().Backend != sparsek.CUDA {
		return nil, &missing{CUBLAS, "it computes on a GPU, and this is the CPU", "use a GPU, or compare with " + OpenBLAS}
	}
	if !s.dense {
		return nil, tooLarge(CUBLAS)
	}
	e := entrant{name: CUBLAS, kernel: "cuBLAS GEMM", dense: true, repeats: densePerRound}
	switch s := any(s).(type) {
	case *subject[sparsek.BFloat16]:
		e.time = timeCUBLAS(s)
	case *subject[sparsek.Float16]:
		e.time = timeCUBLAS(s)
	default:
		return nil, &missing{CUBLAS, "it is timed in 16 bits", "--dtype bf16 or fp16"}
	}
	if err := tryOnce(ctx, &e, MendCUBLAS); err != nil {
		return nil, err
	}
	return []entrant{e}, nil
}

func timeCUBLAS[T sparsek.BFloat16 | sparsek.Float16](s *subject[T]) func(context.Context, int) ([]time.Duration, error) {
	operands := workload.DenseOperands(s.sets, s.shape)
	return func(ctx context.Context, repeats int) ([]time.Duration, error) {
		return sparsek.TimeDense(ctx, s.context, sparsek.DenseTimeOptions[T]{Operands: operands, Warmup: 1, Repeats: repeats})
	}
}

// tooLarge is a dense peer of a matrix that would be too large as a dense one.
func tooLarge(peer string) error {
	return &missing{peer, "a dense A of this size would take too much memory", "compare smaller matrices"}
}

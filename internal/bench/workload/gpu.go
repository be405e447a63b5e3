// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// GPUState asks the program smi how c's GPU stands, without the GPU's own number, as a report may be shown to others. On
// the CPU nothing is asked, and the state is not Known.
func GPUState(ctx context.Context, engine *sparsek.Engine, smi string) nvsmi.State {
	if engine.Info().Backend != sparsek.CUDA {
		return nvsmi.State{}
	}
	state := nvsmi.Look(ctx, smi, engine.Info().Device)
	state.UUID = ""
	return state
}

// Rest is for how long what c runs on rests before each turn of [interleave.Interleave].
func Rest(engine *sparsek.Engine) time.Duration {
	if engine.Info().Backend != sparsek.CUDA {
		return 0
	}
	return interleave.Rest
}

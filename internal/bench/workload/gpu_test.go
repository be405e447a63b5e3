// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// A GPU rests between products, and its state is read, but not its UUID; on the CPU neither happens.
func TestGPUState(t *testing.T) {
	smi := filepath.Join(t.TempDir(), "smi")
	if err := os.WriteFile(smi, []byte("#!/bin/sh\necho GPU-1, 580.65.06, 1980, 3201, 40, 350.5, 0x4\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, engine := range newEngines(t) {
		gpu := engine.Info().Backend == sparsek.CUDA
		state := GPUState(context.Background(), engine, smi)
		if state.Known != gpu || state.UUID != "" || gpu && state.SMClock != 1980 {
			t.Errorf("%v: %+v", engine.Info().Backend, state)
		}
		if rest := Rest(engine); (rest > 0) != gpu {
			t.Errorf("%v rests for %v", engine.Info().Backend, rest)
		}
	}
}

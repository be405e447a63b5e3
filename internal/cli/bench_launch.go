// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/gate/profile"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// launchCases launches cases for a profiler and prints what they were. One that fails ends it: a row of the profiler
// belongs to a launch by its number.
func launchCases(ctx context.Context, e *environment, engine *sparsek.Engine, r *bench.Runner, cases []bench.Case, launches int) error {
	if engine.Info().Backend != sparsek.CUDA {
		return failf(exitUsage, "bench: --launches is for a GPU, and this is the CPU")
	}
	// A profile is of the kernels that the library takes by itself, whatever was measured on this machine.
	if err := os.Setenv("SPARSEK_TUNING_CACHE", "off"); err != nil {
		return err
	}
	build, err := engine.Library().BuildInfo()
	if err != nil {
		return err
	}
	devices, err := engine.Library().Devices()
	if err != nil {
		return err
	}
	out := profile.Launched{GPU: devices[engine.Info().Device].Name, Commit: build.Commit}
	for _, one := range cases {
		l, err := r.Launch(ctx, one, launches)
		if errors.Is(err, workload.ErrWrong) {
			return failf(exitWrongResult, "%s: %w", one.Name, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		out.Cases = append(out.Cases, profile.NewLaunchedCase(l))
	}
	return printJSON(e.stdout, out)
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/gate/profile"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// launchCases launches cases for a profiler and says what it was. One that fails ends it: the profiler's rows are told
// apart by their number.
func launchCases(ctx context.Context, e *environment, c *sparsek.Engine, b *roofline.Bench, cases []roofline.Case, launches int) error {
	// A profile is of the kernels that the library takes by itself, whatever was measured on this machine.
	if err := os.Setenv("SPARSEK_TUNING_CACHE", "off"); err != nil {
		return err
	}
	build, err := c.Library().BuildInfo()
	if err != nil {
		return err
	}
	devices, err := c.Library().Devices()
	if err != nil {
		return err
	}
	out := profile.Launched{GPU: devices[c.Info().Device].Name, Commit: build.Commit}
	for _, one := range cases {
		l, err := b.Launch(ctx, one, launches)
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

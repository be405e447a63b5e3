// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"

	"github.com/sparsek/sparsek/internal/build/rusttests"
)

// Rust builds, and runs the tests of the Rust crates and the checks of their
// sources; with burn those of the crate for Burn too. With programs it only
// compiles the tests, for another machine.
func (c Checkout) Rust(ctx context.Context, burn, programs bool) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	if programs {
		return rusttests.Programs(ctx, c.rust(), burn)
	}
	if err := rusttests.All(ctx, c.rust()); err != nil || !burn {
		return err
	}
	return rusttests.Burn(ctx, c.rust())
}

func (c Checkout) rust() rusttests.Options {
	return rusttests.Options{Root: root, Build: "build", Offline: c.Offline, Out: c.Out, Progress: c.Progress}
}

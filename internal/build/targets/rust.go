// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"

	"github.com/sparsek/sparsek/internal/build/rusttests"
)

// Rust builds, and runs the tests of the Rust crates and the checks of their
// sources.
func (c Checkout) Rust(ctx context.Context) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	return rusttests.All(ctx, c.rust())
}

func (c Checkout) rust() rusttests.Options {
	return rusttests.Options{Root: root, Build: "build", Offline: c.Offline, Out: c.Out, Progress: c.Progress}
}

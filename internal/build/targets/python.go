// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"

	"github.com/sparsek/sparsek/internal/build/pytests"
)

// TestPython builds, and runs the tests of the Python package and the checks
// of its sources.
func (c Checkout) TestPython(ctx context.Context) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	return pytests.All(ctx, c.python())
}

func (c Checkout) python() pytests.Options {
	return pytests.Options{Root: root, Build: "build", Offline: c.Offline, Out: c.Out, Progress: c.Progress}
}

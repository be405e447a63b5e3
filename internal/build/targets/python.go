// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"

	"github.com/sparsek/sparsek/internal/build/bundle"
	"github.com/sparsek/sparsek/internal/build/checkout"
	"github.com/sparsek/sparsek/internal/build/pytests"
	"github.com/sparsek/sparsek/internal/build/version"
	"github.com/sparsek/sparsek/internal/build/wheel"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
)

// Wheel builds, and writes the Python package as a wheel.
func (c Checkout) Wheel(ctx context.Context) error {
	made, err := c.wheel(ctx)
	if err == nil {
		fmt.Fprintf(c.Out, "%s: %s\nsha256 %s\n", made.Path, term.FormatBytes(made.Bytes), made.SHA256)
		for _, part := range made.Parts {
			fmt.Fprintf(c.Out, "  %s\n", part)
		}
	}
	return err
}

func (c Checkout) wheel(ctx context.Context) (wheel.Result, error) {
	if err := c.Build(ctx); err != nil {
		return wheel.Result{}, err
	}
	tools, err := toolchain.Prepare(ctx, c.toolchain())
	if err != nil {
		return wheel.Result{}, err
	}
	files, err := toolchain.Files(ctx, c.toolchain())
	if err != nil {
		return wheel.Result{}, err
	}
	commit, err := checkout.Commit(ctx, root)
	if err != nil {
		return wheel.Result{}, err
	}
	contents, err := bundle.Describe(ctx, bundle.DescribeOptions{Root: root, Version: version.Sparsek, Commit: commit,
		Program: "./cmd/sparsek", Lock: tools.Lock, Files: files})
	if err != nil {
		return wheel.Result{}, err
	}
	return wheel.Write(wheel.Options{Sources: "python/src", Build: "build", Version: version.Sparsek, Licences: contents.Licences,
		SBOM: contents.SBOM, Dir: "build/wheel"})
}

// TestPython builds, and runs the tests of the Python package, the checks of
// its sources, and what users do with its wheel.
func (c Checkout) TestPython(ctx context.Context) error {
	made, err := c.wheel(ctx)
	if err != nil {
		return err
	}
	if err := pytests.All(ctx, c.python()); err != nil {
		return err
	}
	return pytests.Wheel(ctx, c.python(), made.Path)
}

func (c Checkout) python() pytests.Options {
	return pytests.Options{Root: root, Build: "build", Offline: c.Offline, Out: c.Out, Progress: c.Progress}
}

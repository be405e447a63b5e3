// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"os"

	"github.com/sparsek/sparsek/internal/build/bundle"
	"github.com/sparsek/sparsek/internal/build/install"
	"github.com/sparsek/sparsek/internal/build/repro"
	"github.com/sparsek/sparsek/internal/build/version"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
)

// Install builds, and installs library, header, pkg-config file and program
// under prefix. DESTDIR is put before it.
func (c Checkout) Install(ctx context.Context, prefix string) error {
	if err := c.Build(ctx); err != nil {
		return err
	}
	files, err := install.Run(install.Options{Build: "build", Prefix: prefix, DestDir: os.Getenv("DESTDIR"), Version: version.Sparsek})
	for _, file := range files {
		fmt.Fprintln(c.Out, file)
	}
	return err
}

// Bundle writes a file with all that a build without a network needs.
func (c Checkout) Bundle(ctx context.Context) error {
	tools, err := toolchain.Prepare(ctx, c.toolchain())
	if err != nil {
		return err
	}
	files, err := toolchain.Files(ctx, c.toolchain())
	if err != nil {
		return err
	}
	o := bundle.Options{Root: root, Version: version.Sparsek, Toolchain: tools, Files: files, Offline: c.Offline,
		Program: "./cmd/sparsek", Out: "build/sparsek-" + version.Sparsek + "-bundle.tar", Progress: c.Progress}
	made, err := bundle.Write(ctx, o)
	if err == nil {
		fmt.Fprintf(c.Out, "%s: %s, commit %s\nsha256 %s\n", o.Out, term.FormatBytes(made.Bytes), made.Commit, made.SHA256)
	}
	return err
}

// Repro builds the library twice and compares the two byte for byte.
func (c Checkout) Repro(ctx context.Context) error {
	tools, err := toolchain.Prepare(ctx, c.toolchain())
	if err != nil {
		return err
	}
	sum, err := repro.Run(ctx, repro.Options{Root: root, Toolchain: tools, CXX: hostCompiler(), Progress: c.Progress})
	if err == nil {
		fmt.Fprintf(c.Out, "identical: both builds have sha256 %s\n", sum)
	}
	return err
}

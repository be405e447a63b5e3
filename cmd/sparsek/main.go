// SPDX-License-Identifier: Apache-2.0

// Command sparsek multiplies block-sparse matrices by dense ones; docs/cli.md describes it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sparsek/sparsek/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work at its next step; a second one, no longer caught, ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

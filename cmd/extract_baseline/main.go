// SPDX-License-Identifier: Apache-2.0

// Command extract_baseline makes the normal form of a measurement by Nsight Compute, and its hash:
//
//	go run ./cmd/extract_baseline -in ncu.csv -out ci/baseline
//
// writes ci/baseline/nsight_baseline.norm.txt and nsight_baseline.norm.txt.sha256, which `sha256sum -c` reads, and
// prints the hash. The input is CSV of the raw page or in long form, or a report (.ncu-rep) where ncu's Python module
// is at hand.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/machine/doctor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "extract_baseline:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("extract_baseline", flag.ContinueOnError)
	in := flags.String("in", "", "CSV or report (.ncu-rep) of Nsight Compute")
	out := flags.String("out", "", "folder for the normal form and its hash")
	kernel := flags.String("kernel", "", "regular expression: the kernel to take, where there are several")
	all := flags.Bool("all", false, "all metrics, not only those of the headline")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *in == "" || *out == "" || flags.NArg() > 0 {
		return fmt.Errorf("want -in FILE and -out FOLDER")
	}
	metrics := ncu.Metrics()
	if !*all {
		var err error
		if metrics, err = ncu.FindMetrics(ncu.Headline()); err != nil {
			return err
		}
	}
	hash, err := ncu.Extract(ctx, ncu.ExtractOptions{
		In: *in, Out: *out, Kernel: *kernel, Metrics: metrics, Profiler: doctor.FindProfiler(os.DirFS("/")),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, hash)
	return err
}

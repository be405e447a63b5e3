// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/sparsek/sparsek/internal/bench"
	benchreport "github.com/sparsek/sparsek/internal/bench/report"
)

// outputFlags say how a bench is reported.
type outputFlags struct {
	json, csv, markdown, gobench bool   // in place of the table
	html, plots                  string // beside it
}

func (o *outputFlags) define(flags *flag.FlagSet) {
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.BoolVar(&o.csv, "csv", false, "print CSV")
	flags.BoolVar(&o.markdown, "markdown", false, "print Markdown, with commit, device, driver and date")
	flags.BoolVar(&o.gobench, "gobench", false, "print the format of Go benchmarks, for benchstat")
	flags.StringVar(&o.html, "html", "", "write a page with pictures to a `file`")
	flags.StringVar(&o.plots, "plots", "", "write the pictures, as SVG and PNG, into a `folder`")
}

// files tells whether any file is to be written.
func (o *outputFlags) files() bool { return o.html != "" || o.plots != "" }

func (o *outputFlags) validate() error {
	formats := 0
	for _, wanted := range []bool{o.json, o.csv, o.markdown, o.gobench} {
		if wanted {
			formats++
		}
	}
	if formats > 1 {
		return failf(exitUsage, "bench: --json, --csv, --markdown and --gobench exclude each other: each is all that is printed")
	}
	if o.html != "" {
		if err := checkOut(o.html); err != nil {
			return fail(exitBadOutput, fmt.Errorf("bench: --html %s: %w", o.html, err))
		}
	}
	if at, err := os.Stat(o.plots); o.plots != "" && err == nil && !at.IsDir() {
		return failf(exitBadOutput, "bench: --plots %s: this is there and is no folder", o.plots)
	}
	return nil
}

// printer is the format for standard output; nil where it is the suite's own table.
func (o *outputFlags) printer() func(io.Writer, *bench.Report) error {
	switch {
	case o.json:
		return benchreport.JSON
	case o.csv:
		return benchreport.CSV
	case o.markdown:
		return benchreport.Markdown
	case o.gobench:
		return benchreport.GoBench
	}
	return nil
}

// print writes the report to w by p.
func printReport(w io.Writer, p func(io.Writer, *bench.Report) error, r *bench.Report) error {
	if err := p(w, r); err != nil {
		return failf(exitBadOutput, "print the result: %w", err)
	}
	return nil
}

// write writes the files, each as far as it can be.
func (o *outputFlags) write(e *environment, r *bench.Report) error {
	var all error
	if o.html != "" {
		if err := benchreport.HTMLFile(o.html, r); err != nil {
			all = failf(exitBadOutput, "write --html %s: %w", o.html, err)
		} else {
			e.progress.Printf("wrote %s", o.html)
		}
	}
	if o.plots != "" {
		names, err := benchreport.Plots(o.plots, r)
		for _, name := range names {
			e.progress.Printf("wrote %s", name)
		}
		if err != nil {
			all = errors.Join(all, failf(exitBadOutput, "write --plots %s: %w", o.plots, err))
		}
	}
	return all
}

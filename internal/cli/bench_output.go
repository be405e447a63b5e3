// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sparsek/sparsek/internal/bench"
	benchreport "github.com/sparsek/sparsek/internal/bench/report"
)

// outputFlags say how a bench is reported.
type outputFlags struct {
	JSON     bool   `name:"json" xor:"format" help:"Print JSON."`
	CSV      bool   `name:"csv" xor:"format" help:"Print CSV."`
	Markdown bool   `xor:"format" help:"Print Markdown, with commit, device, driver and date."`
	GoBench  bool   `name:"gobench" xor:"format" help:"Print the format of Go benchmarks, for benchstat."`
	HTML     string `name:"html" placeholder:"FILE" help:"Write a page with pictures, too."`
	Plots    string `placeholder:"FOLDER" help:"Write the pictures, as SVG and PNG, too."`
}

// files tells whether any file is to be written.
func (o *outputFlags) files() bool { return o.HTML != "" || o.Plots != "" }

func (o *outputFlags) validate() error {
	if o.HTML != "" {
		if err := checkOut(o.HTML); err != nil {
			return fail(exitBadOutput, fmt.Errorf("bench: --html %s: %w", o.HTML, err))
		}
	}
	if at, err := os.Stat(o.Plots); o.Plots != "" && err == nil && !at.IsDir() {
		return failf(exitBadOutput, "bench: --plots %s: this is there and is no folder", o.Plots)
	}
	return nil
}

// printer is the format for standard output; nil where it is the suite's own table.
func (o *outputFlags) printer() func(io.Writer, *bench.Report) error {
	switch {
	case o.JSON:
		return benchreport.JSON
	case o.CSV:
		return benchreport.CSV
	case o.Markdown:
		return benchreport.Markdown
	case o.GoBench:
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
	if o.HTML != "" {
		if err := benchreport.HTMLFile(o.HTML, r); err != nil {
			all = failf(exitBadOutput, "write --html %s: %w", o.HTML, err)
		} else {
			e.progress.Printf("wrote %s", o.HTML)
		}
	}
	if o.Plots != "" {
		names, err := benchreport.Plots(o.Plots, r)
		for _, name := range names {
			e.progress.Printf("wrote %s", name)
		}
		if err != nil {
			all = errors.Join(all, failf(exitBadOutput, "write --plots %s: %w", o.Plots, err))
		}
	}
	return all
}

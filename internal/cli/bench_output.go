// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/sparsek/sparsek/internal/bench"
	benchreport "github.com/sparsek/sparsek/internal/bench/report"
)

// outputFlags say how a bench is reported.
type outputFlags struct {
	JSON     bool   `name:"json" xor:"format" help:"Print JSON."`
	CSV      bool   `name:"csv" xor:"format" help:"Print CSV."`
	Markdown bool   `xor:"format" help:"Print Markdown, with commit, device, driver and date."`
	Method   bool   `help:"Say below tables and Markdown how the figures were measured; all other formats always do."`
	GoBench  bool   `name:"gobench" xor:"format" help:"Print the format of Go benchmarks, for benchstat."`
	HTML     string `name:"html" placeholder:"FILE" help:"Write a page with pictures, too."`
	Plots    string `placeholder:"FOLDER" help:"Write the pictures, as SVG and PNG, too."`
}

// files reports whether any file is to be written.
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

// report prints the report and writes the files.
func (o *outputFlags) report(e *environment, r *bench.Report) error {
	return errors.Join(o.print(e, r), o.write(e, r))
}

func (o *outputFlags) print(e *environment, r *bench.Report) (err error) {
	switch {
	case o.JSON:
		err = benchreport.JSON(e.stdout, r)
	case o.CSV:
		err = benchreport.CSV(e.stdout, r)
	case o.Markdown:
		err = benchreport.Markdown(e.stdout, []*bench.Report{r}, o.Method)
	case o.GoBench:
		err = benchreport.GoBench(e.stdout, r)
	default:
		err = benchreport.Text(e.stdout, r, terminalWidth(e.stdout), o.Method)
	}
	if err != nil {
		return failf(exitBadOutput, "print the result: %w", err)
	}
	return nil
}

// terminalWidth is that of the terminal behind w, 0 where w is none.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
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

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/sparsek/sparsek/internal/bench"
	benchreport "github.com/sparsek/sparsek/internal/bench/report"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// list prints the cases of the suite that was named, or those of all suites.
func (o *benchCommand) list(e *environment) error {
	backend := o.Device.backend
	if backend == sparsek.Auto {
		backend = sparsek.CUDA
		if devices, err := devicesThere(); err != nil || devices == 0 {
			backend = sparsek.CPU
		}
	}
	for _, s := range bench.Suites() {
		if s.Name == bench.Files || e.given["suite"] && s.Name != o.Suite {
			continue
		}
		settings := o.settings(backend, nil)
		if s.GPU {
			settings.Backend = sparsek.CUDA
		}
		cases, err := bench.Cases(s.Name, settings, o.Cases)
		if err != nil {
			return fail(exitUsage, fmt.Errorf("bench: %w", err))
		}
		if err := benchreport.List(e.stdout, s, cases); err != nil {
			return fail(exitBadOutput, err)
		}
	}
	if e.given["suite"] && o.Suite != bench.Map {
		return nil
	}
	grid := o.grid().Whole(backend)
	cells := len(grid.Matrices()) * len(grid.N)
	_, err := fmt.Fprintf(e.stdout, "%s: %s: %d cells\n", bench.Map, bench.MapSummary, cells)
	return fail(exitBadOutput, err)
}

// devicesThere counts the GPUs that the library can use.
func devicesThere() (int, error) {
	lib, err := sparsek.Default()
	if err != nil {
		return 0, err
	}
	devices, err := lib.Devices()
	return len(devices), err
}

// printFrom prints what was measured before.
func (o *benchCommand) printFrom(e *environment) error {
	m, err := readMaps(o.From)
	switch {
	case err != nil:
		return fail(exitBadFile, err)
	case m != nil:
		return o.reportMap(e, m)
	case len(o.From) > 1 && !o.Markdown:
		return failf(exitUsage, "bench: several --from need --markdown, or be of a map")
	}
	var reports []*bench.Report
	for _, path := range o.From {
		r, err := benchreport.Read(path)
		if err != nil {
			return fail(exitBadFile, err)
		}
		reports = append(reports, r)
	}
	if o.Markdown {
		return fail(exitBadOutput, benchreport.Markdown(e.stdout, reports, o.Method))
	}
	return o.outputFlags.report(e, reports[0])
}

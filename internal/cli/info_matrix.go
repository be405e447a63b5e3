// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// matrixInfo is what info --matrix prints as JSON.
type matrixInfo struct {
	Matrix   string    `json:"matrix"`
	Rows     int       `json:"rows"`
	Cols     int       `json:"cols"`
	Elements int       `json:"elements"` // that the file lists
	Blocks   []bsr.Fit `json:"blocks"`   // by size, the smallest first
}

// describeMatrix shows what blocks of several sizes would store of a file.
func describeMatrix(ctx context.Context, e *environment, path string, asJSON bool) error {
	step := e.progress.Step("read " + path)
	entries, err := matio.ReadSparse(path)
	step.End(err)
	if err != nil {
		return fail(exitBadFile, err)
	}
	step = e.progress.Step("count blocks")
	fits, err := bsr.CompareSizes(ctx, entries)
	step.End(err)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		return failf(exitBadSizes, "%s: %w", path, err)
	}
	r := matrixInfo{path, entries.Rows, entries.Cols, len(entries.Value), fits}
	if asJSON {
		return printJSON(e.stdout, r)
	}
	if err := say(e, "%s: %d x %d, %d elements\n\n", path, r.Rows, r.Cols, r.Elements); err != nil {
		return err
	}
	t := &table{left: 2}
	t.add("block", "", "blocks", "of all", "fill-in", "bf16 values")
	for _, f := range fits {
		note := ""
		switch {
		case f.Own && f.Best:
			note = "the file's own; --block auto"
		case f.Own:
			note = "the file's own"
		case f.Best:
			note = "--block auto"
		}
		t.add(fmt.Sprintf("%dx%d", f.BlockM, f.BlockK), note, fmt.Sprint(f.Blocks), percent(f.Density), digits(f.FillIn), term.FormatBytes(2*f.Stored))
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	return say(e, "\nfill-in: stored elements for each element of the file. Larger blocks multiply faster for each stored element;\n"+
		"blocks of multiples of 8 use tensor cores on a GPU. \"sparsek tune --matrix %s --block BMxBK\" measures.\n", path)
}

// SPDX-License-Identifier: Apache-2.0

// Package report writes what the gate found: as a table for a terminal, Markdown for a pull request, JUnit and SARIF for
// machines, and a page of HTML with the trend and the roofline.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/gate"
)

// Files are the reports that Write makes, by name.
var files = []struct {
	name  string
	write func(io.Writer, *gate.Result, []gate.Record) error
}{
	{"gate.json", func(w io.Writer, r *gate.Result, _ []gate.Record) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}},
	{"gate.md", func(w io.Writer, r *gate.Result, _ []gate.Record) error { return Markdown(w, r) }},
	{"junit.xml", func(w io.Writer, r *gate.Result, _ []gate.Record) error { return JUnit(w, r) }},
	{"gate.sarif", func(w io.Writer, r *gate.Result, _ []gate.Record) error { return SARIF(w, r) }},
	{"gate.html", HTML},
}

// Write writes all reports into dir. trend is the stored history, the oldest first.
func Write(dir string, r *gate.Result, trend []gate.Record) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("writing reports: %w", err)
	}
	var all []error
	for _, f := range files {
		var text bytes.Buffer
		err := f.write(&text, r, trend)
		if err == nil {
			err = renameio.WriteFile(filepath.Join(dir, f.name), text.Bytes(), 0o644)
		}
		if err != nil {
			all = append(all, fmt.Errorf("writing %s: %w", f.name, err))
		}
	}
	return errors.Join(all...)
}

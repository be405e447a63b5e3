// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// table is text in columns. The first `left` columns are aligned to the left, the others to the right.
type table struct {
	left int
	rows humanize.Table
}

func (t *table) add(cells ...string) { t.rows.Add(cells...) }

func (t *table) print(w io.Writer) error {
	t.rows.Left = t.left
	if err := t.rows.Print(w); err != nil {
		return failf(exitBadOutput, "print the result: %w", err)
	}
	return nil
}

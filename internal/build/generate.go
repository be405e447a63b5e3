// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/generated"
	"github.com/sparsek/sparsek/internal/kernels"
	"github.com/sparsek/sparsek/internal/tuningtable"
)

// generate writes the sources that are made from the list of kernels and the
// tuning tables into dir, which is relative to root.
func generate(root, dir string, list *kernels.List) error {
	files := kernels.Files(list)
	table, err := tuningtable.Source(os.DirFS(filepath.Join(root, tuningDir)))
	if err != nil {
		return err
	}
	files[tuningtable.File] = table
	return generated.Write(filepath.Join(root, dir), files)
}

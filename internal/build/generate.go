// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/build/codegen"
	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
	"github.com/sparsek/sparsek/internal/build/codegen/tuningtable"
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
	return codegen.Write(filepath.Join(root, dir), files)
}

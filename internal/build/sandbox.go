// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"slices"

	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
)

// sandboxUnits generates the files of a library that has the kernels of the
// family tma_sandbox and no others, and lists what is to be compiled for it.
func sandboxUnits(root string, list *kernels.List) ([]unit, error) {
	alone := &kernels.List{Comment: list.Comment, Kernels: slices.DeleteFunc(slices.Clone(list.Kernels),
		func(k kernels.Kernel) bool { return k.Family != kernels.TMASandbox })}
	if len(alone.Kernels) == 0 {
		return nil, fmt.Errorf("%s has no kernel of the family %s", kernelsFile, kernels.TMASandbox)
	}
	if err := generate(root, sandboxGenDir, alone); err != nil {
		return nil, err
	}
	return findUnits(root, sandboxGenDir, alone)
}

// SPDX-License-Identifier: Apache-2.0

package pybindings

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/build/cheader"
)

// Write writes the bindings into the checkout at root, from its header.
func Write(root string) error {
	header, err := os.ReadFile(filepath.Join(root, cheader.Name))
	if err != nil {
		return fmt.Errorf("writing the Python bindings: %w", err)
	}
	text, err := Source(header)
	if err != nil {
		return fmt.Errorf("writing the Python bindings: %w", err)
	}
	return renameio.WriteFile(filepath.Join(root, File), text, 0o666)
}

// SPDX-License-Identifier: Apache-2.0

// Package tuningtable generates the measurements that ship with the library:
// a C++ source with the text of each file of cutlass_ext/tuning. The library
// itself reads them, as it reads a user's tuning cache.
package tuningtable

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sparsek/sparsek/internal/build/codegen"
)

// File is the name of the generated source.
const File = "tuning_table.cpp"

// Source is the text of the source for the .txt files in a folder: one for each GPU.
func Source(folder fs.FS) ([]byte, error) {
	names, err := fs.Glob(folder, "*.txt")
	if err != nil {
		return nil, fmt.Errorf("generating the tuning table: %w", err)
	}
	var b bytes.Buffer
	b.WriteString(codegen.Header("cutlass_ext/tuning"))
	b.WriteString("#include \"tune/shipped_table.h\"\n\nnamespace sparsek::tune {\n\nconst ShippedFile kShippedFiles[] = {\n")
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("generating the tuning table: %w", err)
		}
		fmt.Fprintf(&b, "    {%s,\n", codegen.Quote(name))
		for line := range strings.Lines(string(text)) {
			fmt.Fprintf(&b, "     %s\n", codegen.Quote(line))
		}
		b.WriteString("     \"\"},\n")
	}
	// C++ has no empty arrays.
	fmt.Fprintf(&b, "    {nullptr, nullptr}};\nconst int kShippedFileCount = %d;\n\n}  // namespace sparsek::tune\n", len(names))
	return b.Bytes(), nil
}

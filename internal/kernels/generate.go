// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Registry is the name of the generated table's file.
const Registry = "registry.cpp"

const header = "// SPDX-License-Identifier: Apache-2.0\n// Generated from kernels.json; changes here are lost.\n"

// Instance is the text of the file that instantiates k.
func Instance(k Kernel) []byte {
	d, _ := dtypeOf(k.DType)
	var b bytes.Buffer
	fmt.Fprintf(&b, `%s#include "cuda/%s.cuh"

namespace sparsek::cuda {
namespace config {
struct %s {
  using Element = %s;
  static constexpr int kTileM = %d, kTileN = %d, kTileK = %d, kStages = %d, kBlockM = %d;
};
}  // namespace config

extern const KernelOps ops_%[3]s = %[2]s_ops<config::%[3]s>();

}  // namespace sparsek::cuda
`, header, k.Family, k.Name, d.element, k.Tile[0], k.Tile[1], k.Tile[2], k.Stages, k.BlockM)
	return b.Bytes()
}

// RegistryText is the text of the table of all kernels, in the list's order.
func RegistryText(list *List) []byte {
	var b bytes.Buffer
	b.WriteString(header)
	b.WriteString("#include \"cuda/kernel.h\"\n\nnamespace sparsek::cuda {\n\n")
	for _, k := range list.Kernels {
		fmt.Fprintf(&b, "extern const KernelOps ops_%s;\n", k.Name)
	}
	b.WriteString("\n// name, family, why, dtype, tile m n k, stages, block_m, its multiples too,\n// block_k a multiple of, baseline, ops\n")
	b.WriteString("const KernelDesc kKernels[] = {\n")
	for _, k := range list.Kernels {
		d, _ := dtypeOf(k.DType)
		fmt.Fprintf(&b, "    {%s, %s, %s, %s, %d, %d, %d, %d, %d, %t, %d, %t, &ops_%s},\n",
			quote(k.Name), quote(k.Family), quote(k.Why), d.status, k.Tile[0], k.Tile[1], k.Tile[2], k.Stages,
			k.BlockM, k.BlockMMultiple, k.BlockKMultiple, k.Baseline, k.Name)
	}
	fmt.Fprintf(&b, "};\nconst int kKernelCount = %d;\n\n}  // namespace sparsek::cuda\n", len(list.Kernels))
	return b.Bytes()
}

// InstanceFile is the name of the file that instantiates k.
func InstanceFile(k Kernel) string { return k.Name + ".cu" }

// Generate writes the files of the list into dir. A file that is right already
// stays untouched, and what else lies in dir is removed.
func Generate(list *List, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("generating kernels: %w", err)
	}
	wanted := map[string]bool{Registry: true}
	if err := writeIfChanged(filepath.Join(dir, Registry), RegistryText(list)); err != nil {
		return err
	}
	for _, k := range list.Kernels {
		name := InstanceFile(k)
		wanted[name] = true
		if err := writeIfChanged(filepath.Join(dir, name), Instance(k)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("generating kernels: %w", err)
	}
	for _, entry := range entries {
		if wanted[entry.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("removing a stale generated file: %w", err)
		}
	}
	return nil
}

func writeIfChanged(path string, text []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("generating kernels: %w", err)
	}
	if err := renameio.WriteFile(path, text, 0o666); err != nil {
		return fmt.Errorf("generating kernels: %w", err)
	}
	return nil
}

// quote writes s as a C++ string literal.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			// Three octal digits end the escape whatever follows.
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

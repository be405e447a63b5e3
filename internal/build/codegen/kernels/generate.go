// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"fmt"

	"github.com/sparsek/sparsek/internal/build/codegen"
)

// Registry is the name of the generated table's file.
const Registry = "registry.cpp"

// listName is what generated files are made from.
const listName = "kernels.json"

// Instance is the text of the file that instantiates k.
func Instance(k Kernel) []byte {
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
`, codegen.Header(listName), k.Family, k.Name, k.element(), k.Tile[0], k.Tile[1], k.Tile[2], k.Stages, k.BlockM)
	return b.Bytes()
}

// RegistryText is the text of the table of all kernels, in the list's order.
func RegistryText(list *List) []byte {
	var b bytes.Buffer
	b.WriteString(codegen.Header(listName))
	b.WriteString("#include \"cuda/kernel.h\"\n\nnamespace sparsek::cuda {\n\n")
	for _, k := range list.Kernels {
		fmt.Fprintf(&b, "extern const KernelOps ops_%s;\n", k.Name)
	}
	b.WriteString("\n// name, family, why, types of A and B, tile m n k, stages, block_m, its multiples too,\n// block_k a multiple of, baseline, ops\n")
	b.WriteString("const KernelDesc kKernels[] = {\n")
	for _, k := range list.Kernels {
		d, _ := dtypeOf(k.DType)
		fmt.Fprintf(&b, "    {%s, %s, %s, %s, %s, %d, %d, %d, %d, %d, %t, %d, %t, &ops_%s},\n",
			codegen.Quote(k.Name), codegen.Quote(k.Family), codegen.Quote(k.Why), d.status, k.typeOfB().status, k.Tile[0], k.Tile[1], k.Tile[2], k.Stages,
			k.BlockM, k.BlockMMultiple, k.BlockKMultiple, k.Baseline, k.Name)
	}
	fmt.Fprintf(&b, "};\nconst int kKernelCount = %d;\n\n}  // namespace sparsek::cuda\n", len(list.Kernels))
	return b.Bytes()
}

// InstanceFile is the name of the file that instantiates k.
func InstanceFile(k Kernel) string { return k.Name + ".cu" }

// Files are the texts of what is generated from the list, by name.
func Files(list *List) map[string][]byte {
	files := map[string][]byte{Registry: RegistryText(list)}
	for _, k := range list.Kernels {
		files[InstanceFile(k)] = Instance(k)
	}
	return files
}

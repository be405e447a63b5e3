// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_list.h"

#include <utility>

#include "abi/backend.h"
#include "abi/error.h"
#include "cpu/cpu_features.h"

namespace sparsek {
namespace cpu {
namespace {

bool has_sse2() { return true; }  // every x86-64 does

struct Entry {
  const Kernel* kernel;
  const char* needs;
  bool (*runs_here)();
};

// In the order of priority.
const Entry kEntries[] = {
    {&kAvx512Kernel, "AVX-512 (F, BW, VL, DQ)", has_avx512},
    {&kAvx2Kernel, "AVX2, FMA and F16C", has_avx2},
    {&kGenericKernel, "SSE2", has_sse2},
};

// The names of all kernels, or of those that run on this processor.
std::string names(bool all) {
  std::string list;
  for (const Entry& entry : kEntries) {
    if (all || entry.runs_here()) list += (list.empty() ? "" : ", ") + std::string(entry.kernel->name);
  }
  return list;
}

}  // namespace

std::vector<ListedKernel> listed_kernels() {
  std::vector<ListedKernel> list;
  for (const Entry& entry : kEntries) {
    std::string obstacle;
    if (!entry.runs_here()) obstacle = std::string("it needs ") + entry.needs + ", which this processor lacks";
    list.push_back({entry.kernel, std::move(obstacle)});
  }
  return list;
}

const Kernel& first_kernel() {
  const Entry* entry = kEntries;
  while (!entry->runs_here()) ++entry;
  return *entry->kernel;
}

const Kernel& kernel_named(const std::string& name) {
  for (const Entry& entry : kEntries) {
    if (name != entry.kernel->name) continue;
    if (entry.runs_here()) return *entry.kernel;
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s needs %s, which this processor lacks; it runs %s", entry.kernel->name,
         entry.needs, names(false).c_str());
  }
  fail(SPARSEK_NO_SUCH_KERNEL, "the CPU back-end has no kernel %.100s; it has %s", name.c_str(), names(true).c_str());
}

}  // namespace cpu

int cpu_kernel_count() { return static_cast<int>(sizeof(cpu::kEntries) / sizeof(cpu::kEntries[0])); }

void cpu_kernel_info(int index, sparsek_kernel_info& out) {
  const cpu::Kernel& kernel = *cpu::kEntries[index].kernel;
  out.name = kernel.name;
  out.why = kernel.why;
  out.backend = SPARSEK_CPU;
  out.dtype = 0;
  out.tile_m = 0;  // follows the block
  out.tile_n = cpu::kTileCols;
  out.tile_k = cpu::kDepth;
  out.stages = 1;
  out.block_m = 0;
  out.block_m_multiple = 1;
  out.block_k_multiple = 1;
}

}  // namespace sparsek

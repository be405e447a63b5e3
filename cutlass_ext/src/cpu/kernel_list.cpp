// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_list.h"

#include "abi/backend.h"
#include "abi/error.h"
#include "cpu/cpu_features.h"

namespace sparsek {
namespace cpu {
namespace {

bool has_sse2() { return true; }  // every x86-64 does

struct Candidate {
  const Kernel* kernel;
  const char* needs;
  bool (*runs_here)();
};

// In the order of priority.
const Candidate kCandidates[] = {
    {&kAvx512Kernel, "AVX-512 (F, BW, VL, DQ)", has_avx512},
    {&kAvx2Kernel, "AVX2, FMA and F16C", has_avx2},
    {&kGenericKernel, "SSE2", has_sse2},
};

// Names of all kernels, or of those that run here.
std::string names(bool all) {
  std::string list;
  for (const Candidate& candidate : kCandidates) {
    if (all || candidate.runs_here()) list += (list.empty() ? "" : ", ") + std::string(candidate.kernel->name);
  }
  return list;
}

}  // namespace

KernelChoice choose_kernel(const std::string& name) {
  for (const Candidate& candidate : kCandidates) {
    const bool runs = candidate.runs_here();
    if (name.empty() && runs) return {candidate.kernel, std::string("this processor has ") + candidate.needs};
    if (name != candidate.kernel->name) continue;
    if (runs) return {candidate.kernel, "asked for by name"};
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s needs %s, which this processor lacks; it runs %s", candidate.kernel->name,
         candidate.needs, names(false).c_str());
  }
  fail(SPARSEK_NO_SUCH_KERNEL, "the CPU back-end has no kernel %.100s; it has %s", name.c_str(), names(true).c_str());
}

}  // namespace cpu

int cpu_kernel_count() { return static_cast<int>(sizeof(cpu::kCandidates) / sizeof(cpu::kCandidates[0])); }

void cpu_kernel_info(int index, sparsek_kernel_info& out) {
  const cpu::Kernel& kernel = *cpu::kCandidates[index].kernel;
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

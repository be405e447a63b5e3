// SPDX-License-Identifier: Apache-2.0
// The CUDA back-end's description of a kernel, for the host. The table is generated from kernels.json.
#pragma once

#include <cstring>

#include "cuda/launch_args.h"
#include "sparsek.h"

namespace sparsek::cuda {

struct KernelDesc {
  const char* name;
  const char* family;  // the kernel family
  const char* why;
  sparsek_dtype dtype, dtype_b;  // of A, and of B
  int tile_m;                    // 0: as tall as a block row
  int tile_n, tile_k, stages;
  int block_m;            // block heights served: this one,
  bool block_m_multiple;  // or every multiple of it
  int block_k_multiple;   // block widths served: multiples of this
  bool baseline;          // for comparisons: runs only where it is named
  const KernelOps* ops;
};

// A CTA has one chunk at a time, not each of its warps, and takes several: the layout is cuda/window_layout.h's.
inline bool has_window(const KernelDesc& kernel) { return std::strcmp(kernel.family, "row_window") == 0; }

// Its CTAs have a block row each (cuda/row_mma_sizes.h).
inline bool has_block_row(const KernelDesc& kernel) { return std::strcmp(kernel.family, "row_mma") == 0; }

// Its plans have lists of the elements of each stage (cuda/stage_lists.h).
inline bool scatters(const KernelDesc& kernel) { return std::strcmp(kernel.family, "wgmma_scatter") == 0; }

// It reads A from dense tiles, which its products write unless the plan keeps them (cuda/pack_fp64.h).
inline bool packs_fp64(const KernelDesc& kernel) { return std::strcmp(kernel.family, "dmma_packed") == 0; }

// Likewise, of planes (cuda/pack_planes.h).
inline bool packs_planes(const KernelDesc& kernel) { return std::strcmp(kernel.family, "planes_packed") == 0; }

// Its plans have chunks, of which it reads where block rows begin: its tiles follow from the sizes.
inline bool reads_rows(const KernelDesc& kernel) {
  return scatters(kernel) || packs_fp64(kernel) || packs_planes(kernel);
}

// Elements of A and B are cut off to TF32. Of B it reads only one whose columns are contiguous.
inline bool cuts_to_tf32(const KernelDesc& kernel) { return std::strcmp(kernel.family, "wgmma_tf32") == 0; }

extern const KernelDesc kKernels[];
extern const int kKernelCount;

}  // namespace sparsek::cuda

// SPDX-License-Identifier: Apache-2.0
// The kernels that the cost model knows, as far as it looks at them: kernels.json without CUDA.
#pragma once

#include "cuda/kernel.h"

namespace sparsek::cuda {

constexpr KernelOps modelled_ops(int ctas_per_sm, int most_cluster, bool may_split) {
  KernelOps ops = {};
  ops.ctas_per_sm = ctas_per_sm;
  ops.any_rows = true;
  ops.most_cluster = most_cluster;
  ops.may_split = may_split;
  return ops;
}

constexpr KernelOps kSkinnyOps = modelled_ops(2, 4, false), kTileOps = modelled_ops(1, 1, false),
                    kGatherOps = modelled_ops(1, 1, true), kDmmaOps = modelled_ops(2, 1, false),
                    kDmma64Ops = modelled_ops(3, 1, false), kSimtOps = modelled_ops(2, 1, false);

constexpr KernelOps chunked_ops() {
  KernelOps ops = modelled_ops(1, 1, false);
  ops.takes_chunks = true;
  return ops;
}
constexpr KernelOps kChunkOps = chunked_ops();

// Of blocks up to 32 x 32.
constexpr KernelDesc kModelledSmall[] = {
    {"few_columns_bf16", "few_columns", "", SPARSEK_BF16, SPARSEK_BF16, 0, 0, 1, 1, 1, true, 1, false, &kChunkOps},
    {"few_columns_fp64", "few_columns", "", SPARSEK_FP64, SPARSEK_FP64, 0, 0, 1, 1, 1, true, 1, false, &kChunkOps},
    {"few_columns_fp32", "few_columns", "", SPARSEK_FP32, SPARSEK_FP32, 0, 0, 1, 1, 1, true, 1, false, &kChunkOps},
};

constexpr KernelDesc kModelledRows[] = {
    {"row_mma_bf16_64", "row_mma", "", SPARSEK_BF16, SPARSEK_BF16, 0, 64, 32, 1, 1, true, 1, false, &kSimtOps},
    {"row_mma_fp32_32", "row_mma", "", SPARSEK_FP32, SPARSEK_FP32, 0, 32, 16, 1, 1, true, 1, false, &kSimtOps},
    {"row_mma_fp64_32", "row_mma", "", SPARSEK_FP64, SPARSEK_FP64, 0, 32, 16, 1, 1, true, 1, false, &kSimtOps},
};

// Of blocks up to 64 x 64, by many columns.
constexpr KernelOps scattering_ops(int ctas_per_sm) {
  KernelOps ops = modelled_ops(ctas_per_sm, 1, false);
  ops.takes_chunks = true;
  return ops;
}
constexpr KernelOps kScatterOps = scattering_ops(1), kNarrowScatterOps = scattering_ops(2),
                    kNarrowDmmaOps = scattering_ops(3);
constexpr KernelDesc kModelledScatter[] = {
    {"scatter_bf16_128_64", "wgmma_scatter", "", SPARSEK_BF16, SPARSEK_BF16, 128, 64, 64, 3, 1, true, 1, false,
     &kNarrowScatterOps},
    {"scatter_bf16_128_256", "wgmma_scatter", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 3, 1, true, 1, false,
     &kScatterOps},
    {"packed_fp64_64_128", "dmma_packed", "", SPARSEK_FP64, SPARSEK_FP64, 64, 128, 16, 4, 1, true, 1, false,
     &kNarrowScatterOps},
    {"packed_fp64_64_64", "dmma_packed", "", SPARSEK_FP64, SPARSEK_FP64, 64, 64, 16, 4, 1, true, 1, false,
     &kNarrowDmmaOps},
};

// In fp32.
constexpr KernelDesc kModelledPlanes = {
    "packed_fp32_128_128", "planes_packed", "", SPARSEK_FP32, SPARSEK_FP32, 128, 128, 16, 8, 1, true, 1, false,
    &kScatterOps};

// Of blocks of 3 x 3 whose neighbouring rows share columns.
constexpr KernelDesc kModelledWindow = {
    "window_fp32_3", "row_window", "", SPARSEK_FP32, SPARSEK_FP32, 0, 0, 1, 1, 3, false, 3, false, &kChunkOps};

constexpr KernelDesc kModelled[] = {
    {"skinny_bf16_64_16", "skinny", "", SPARSEK_BF16, SPARSEK_BF16, 64, 16, 64, 4, 16, true, 16, false, &kSkinnyOps},
    {"skinny_bf16_64_64", "skinny", "", SPARSEK_BF16, SPARSEK_BF16, 64, 64, 64, 6, 16, true, 16, false, &kSkinnyOps},
    {"tma_bf16_64x2_256", "collective", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 64, false, 64, false,
     &kTileOps},
    {"tma_bf16_128_256", "collective", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 128, true, 64, false,
     &kTileOps},
    {"gather_bf16_128_256", "wgmma_gather", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 8, true, 8, false,
     &kGatherOps},
    {"simt_bf16", "simt", "", SPARSEK_BF16, SPARSEK_BF16, 0, 64, 1, 1, 1, true, 1, false, &kSimtOps},
    {"blocks_bf16_64x2_256", "wgmma_blocks", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 64, false, 64, false,
     &kTileOps},
    {"blocks_bf16_128_256", "wgmma_blocks", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 128, true, 64, false,
     &kTileOps},
    {"simt_fp64", "simt", "", SPARSEK_FP64, SPARSEK_FP64, 0, 64, 1, 1, 1, true, 1, false, &kSimtOps},
    {"simt_fp32", "simt", "", SPARSEK_FP32, SPARSEK_FP32, 0, 64, 1, 1, 1, true, 1, false, &kSimtOps},
    {"dmma_fp64_64_128", "dmma", "", SPARSEK_FP64, SPARSEK_FP64, 64, 128, 16, 4, 8, true, 8, false, &kDmmaOps},
    {"dmma_fp64_64_32", "dmma", "", SPARSEK_FP64, SPARSEK_FP64, 64, 32, 16, 8, 8, true, 8, false, &kDmmaOps},
    {"dmma_fp64_64_64", "dmma", "", SPARSEK_FP64, SPARSEK_FP64, 64, 64, 16, 4, 8, true, 8, false, &kDmma64Ops},
    {"dmma_fp32_64_64", "dmma", "", SPARSEK_FP32, SPARSEK_FP32, 64, 64, 16, 8, 8, true, 8, false, &kDmma64Ops},
    {"dmma_fp32_64_32", "dmma", "", SPARSEK_FP32, SPARSEK_FP32, 64, 32, 16, 8, 8, true, 8, false, &kDmmaOps},
    {"skinny_fp32_16_16", "skinny_fma", "", SPARSEK_FP32, SPARSEK_FP32, 16, 16, 32, 1, 8, true, 4, false, &kSimtOps},
    {"skinny_fp64_16_8", "skinny_fma", "", SPARSEK_FP64, SPARSEK_FP64, 16, 8, 16, 1, 8, true, 2, false, &kSimtOps},
    {"packed_bf16_128_256", "wgmma_packed", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 4, true, 1, false,
     &kTileOps},
    {"planes16_fp32_128_128", "wgmma_planes", "", SPARSEK_FP32, SPARSEK_FP32, 128, 128, 16, 8, 8, true, 16, false,
     &kTileOps},
    {"planes_fp32_128_128", "wgmma_planes", "", SPARSEK_FP32, SPARSEK_FP32, 128, 128, 32, 4, 8, true, 32, false,
     &kTileOps},
};

}  // namespace sparsek::cuda

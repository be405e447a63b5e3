// SPDX-License-Identifier: Apache-2.0
// The instructions of cuda/wgmma.cuh and cuda/wgmma_registers.cuh for e4m3, m64nNk32. Both operands have K contiguous:
// there are no others of 8 bits.
#pragma once

#include "cuda/wgmma_registers.cuh"
#include "cutlass/float8.h"

namespace sparsek::cuda {

template <>
struct WgmmaSs<cutlass::float_e4m3_t, Major::K, Major::K, 16> {
  using Op = cute::SM90::GMMA::MMA_64x128x32_F32E4M3E4M3_SS_TN<>;
};
template <>
struct WgmmaRs<cutlass::float_e4m3_t, Major::K, 8> {
  using Op = cute::SM90::GMMA::MMA_64x64x32_F32E4M3E4M3_RS_TN<>;
};
template <>
struct WgmmaRs<cutlass::float_e4m3_t, Major::K, 16> {
  using Op = cute::SM90::GMMA::MMA_64x128x32_F32E4M3E4M3_RS_TN<>;
};

// The descriptor of A (64, K) or B (N, K) in shared memory, K contiguous, in rows of 64 or 128 bytes, which is also the
// swizzle: the next 8 rows are 8 rows on. K lies in one row, so that there is no leading offset.
template <int RowBytes>
__device__ uint64_t wgmma_descriptor_rows(uint32_t shared_address) {
  static_assert(RowBytes == 64 || RowBytes == 128);
  using cute::SM90::GMMA::LayoutType;
  cute::GmmaDescriptor descriptor;
  descriptor.desc_ = 0;
  descriptor.bitfield.start_address_ = static_cast<uint16_t>(shared_address >> 4);
  descriptor.bitfield.leading_byte_offset_ = 1;
  descriptor.bitfield.stride_byte_offset_ = 8 * RowBytes >> 4;
  descriptor.bitfield.layout_type_ = static_cast<uint8_t>(RowBytes == 128 ? LayoutType::B128 : LayoutType::B64);
  return descriptor.desc_;
}

// Four numbers as bytes of e4m3, the first lowest: rounded to nearest even, and to 448 where they are above that.
__device__ inline uint32_t pack_e4m3(float a, float b, float c, float d) {
  uint32_t bytes;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n"
      "}"
      : "=r"(bytes)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return bytes;
}

}  // namespace sparsek::cuda

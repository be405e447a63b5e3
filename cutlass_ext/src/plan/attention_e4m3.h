// SPDX-License-Identifier: Apache-2.0
// How kernels that round weights to E4M3 do so, which the error bound of the check depends on.
#pragma once

namespace sparsek {

// Of a row, the greatest weight is rounded at 2^kE4m3Lift or above. Numbers of E4M3 are rounded by up to 2^-10, or by
// the product_roundoff of sparsek_attention_info.
constexpr int kE4m3Lift = 6;
// The unit_roundoff of sparsek_attention_info is that of products of E4M3. Those of weights and values are added up
// with it for so many keys, and these sums in fp32, as is all else.
constexpr int kE4m3SumKeys = 512;

}  // namespace sparsek

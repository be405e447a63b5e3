// SPDX-License-Identifier: Apache-2.0
// Of one head of attention: what a query and a key have between them, and how far a kernel's value may be off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu/check_attention.h"
#include "cpu/check_judge.h"
#include "cpu/check_values.h"
#include "plan/attention_e4m3.h"

namespace sparsek::cpu {
namespace {

inline double element_of(const void* data, int32_t dtype, int64_t at) {
  switch (dtype) {
    case SPARSEK_E4M3:
      return Element<SPARSEK_E4M3>::value(static_cast<const uint8_t*>(data)[at]);
    case SPARSEK_BF16:
      return Element<SPARSEK_BF16>::value(static_cast<const uint16_t*>(data)[at]);
    case SPARSEK_FP16:
      return Element<SPARSEK_FP16>::value(static_cast<const uint16_t*>(data)[at]);
    case SPARSEK_FP64:
      return static_cast<const double*>(data)[at];
    default:
      return static_cast<const float*>(data)[at];
  }
}

// A value, and a bound on the error of a kernel's.
template <typename Real>
struct Inexact {
  Real value, error;
};

template <typename Real>
class Pairs {
 public:
  explicit Pairs(const AttentionCheck& check)
      : check_(check),
        rounds_to_e4m3_(check.shape.dtype == SPARSEK_E4M3 && check.product_roundoff > 0),
        product_u_(check.unit_roundoff),
        u_(rounds_to_e4m3_ ? std::min(check.unit_roundoff, 0x1p-22) : check.unit_roundoff),
        // A kernel's exp may give 0 for what is near the least normal number.
        underflow_(check.shape.dtype == SPARSEK_FP64 ? Real{0x1p-1021} : Real{0x1p-125}),
        rounding_underflow_(
            check.product_roundoff > 0 && !rounds_to_e4m3_ ? Real{output_type(check.shape.dtype).half_subnormal} : 0) {}

  // Takes a head of queries and its keys.
  void load(int64_t b, int64_t head_q) {
    const AttentionShape& shape = check_.shape;
    const sparsek_attention_args& args = check_.args;
    const int64_t head_k = head_q / (shape.heads_q / shape.heads_k);
    length_q_ = length(args.lengths_q, b, shape.seq_q);
    length_k_ = length(args.lengths_k, b, shape.seq_k);
    batch_ = b;
    head_q_ = head_q;
    copy(q_, args.q, args.stride_q, b, head_q, length_q_, shape.head_size);
    copy_keys(k_, args.k, args.stride_k, head_k, shape.head_size);
    copy_keys(v_, args.v, args.stride_v, head_k, shape.head_size_v);
    multiply(q_, args.scale_q, b * shape.heads_q + head_q);
    multiply(k_, args.scale_k, b * shape.heads_k + head_k);
    multiply(v_, args.scale_v, b * shape.heads_k + head_k);
    first_row_ =
        ((shape.layout_batch == 1 ? 0 : b) * shape.layout_heads + head_q * shape.layout_heads / shape.heads_q) *
        ((shape.seq_q + shape.block_q - 1) / shape.block_q);
    if (check_.output < SPARSEK_ATTENTION_GRAD_Q) return;
    const int32_t lse_type = shape.dtype == SPARSEK_FP64 ? SPARSEK_FP64 : SPARSEK_FP32;
    lse_.resize(static_cast<size_t>(length_q_));
    for (int64_t i = 0; i < length_q_; ++i) {
      lse_[i] = element_of(args.lse, lse_type, (b * shape.heads_q + head_q) * shape.seq_q + i);
    }
    if (check_.output == SPARSEK_ATTENTION_MASS) return;
    copy(grad_o_, args.grad_o, args.stride_grad_o, b, head_q, length_q_, shape.head_size_v);
    copy(o_, args.o, args.stride_o, b, head_q, length_q_, shape.head_size_v);
    deltas_.resize(lse_.size());
    for (int64_t i = 0; i < length_q_; ++i) {
      deltas_[i] = product(grad_o(i), o_.data() + i * shape.head_size_v, shape.head_size_v, 0);
    }
  }

  const Real* q(int64_t i) const { return q_.data() + i * check_.shape.head_size; }
  const Real* k(int64_t j) const { return k_.data() + j * check_.shape.head_size; }
  const Real* v(int64_t j) const { return v_.data() + j * check_.shape.head_size_v; }
  const Real* grad_o(int64_t i) const { return grad_o_.data() + i * check_.shape.head_size_v; }

  // Whether weights are rounded to E4M3 (plan/attention_e4m3.h).
  bool rounds_to_e4m3() const { return rounds_to_e4m3_; }
  // The unit roundoff, where weights are rounded to E4M3 that of all but products: of ex2.approx, and fp32.
  double u() const { return static_cast<double>(u_); }

  Real underflow() const { return underflow_; }
  // Of a weight of softmax, also where it is rounded to the operands' type.
  Real weight_underflow(Real greatest) const {
    return underflow_ + (rounds_to_e4m3_ ? std::ldexp(greatest, -10 - kE4m3Lift) : rounding_underflow_);
  }

  // Calls visit(j) for each key that query i sees. Returns the number of its blocks.
  template <typename Visit>
  int64_t for_keys(int64_t i, Visit visit) const {
    const AttentionShape& shape = check_.shape;
    if (i >= length_q_) return 0;
    const int64_t place = i + (shape.align_ends ? length_k_ - length_q_ : 0), row = first_row_ + i / shape.block_q;
    for (int32_t e = check_.layout.offsets[row]; e < check_.layout.offsets[row + 1]; ++e) {
      const int64_t begin = check_.layout.columns[e] * shape.block_k;
      for (int64_t j = begin; j < begin + shape.block_k && j < length_k_; ++j) {
        if (shape.left && j < place - shape.window_left) continue;
        if (shape.right && j > place + shape.window_right) continue;
        if (!has_key(j) || is_hidden(i, j)) continue;
        visit(j);
      }
    }
    return check_.layout.offsets[row + 1] - check_.layout.offsets[row];
  }

  // S, without what softmax adds to its error.
  Inexact<Real> score(int64_t i, int64_t j) const {
    Inexact<Real> s = capped_score(i, j);
    if (check_.args.bias != nullptr) {
      const Real own = bias(i, j);
      s.value += own;
      s.error += 8 * u_ * std::fabs(own);
    }
    s.error += 8 * u_ * std::fabs(s.value);
    return s;
  }

  // P = exp(S - lse).
  Inexact<Real> weight(int64_t i, int64_t j) const { return rounded(unrounded_weight(i, j)); }
  // As it is before it is multiplied.
  Inexact<Real> unrounded_weight(int64_t i, int64_t j) const { return exact_weight(score(i, j), i); }

  // dS = P (dP - delta), times the derivative of the soft cap.
  Inexact<Real> gradient(int64_t i, int64_t j) const {
    const Inexact<Real> all = times(unrounded_gradient(i, j), slope(i, j));
    return rounded({all.value, all.error + 4 * u_ * (std::fabs(all.value) + all.error)});
  }
  // dS without that derivative, as it is before it is multiplied.
  Inexact<Real> unrounded_gradient(int64_t i, int64_t j) const {
    const AttentionShape& shape = check_.shape;
    const Inexact<Real> p = unrounded_weight(i, j);
    const Inexact<Real> grad_p = product(grad_o(i), v(j), shape.head_size_v, 1), delta = deltas_[i];
    Inexact<Real> core = {grad_p.value - delta.value, grad_p.error + delta.error};
    core.error += 2 * u_ * (std::fabs(grad_p.value) + std::fabs(delta.value));
    return times(p, core);
  }

 private:
  // Before the bias is added.
  Inexact<Real> capped_score(int64_t i, int64_t j) const {
    const AttentionShape& shape = check_.shape;
    Inexact<Real> s = product(q(i), k(j), shape.head_size, check_.shape.dtype == SPARSEK_E4M3 ? 6 : 3);
    s.value *= static_cast<Real>(shape.scale);
    s.error *= std::fabs(static_cast<Real>(shape.scale));
    if (shape.soft_cap > 0) {
      s.error += 8 * u_ * (std::fabs(s.value) + shape.soft_cap);
      s.value = shape.soft_cap * std::tanh(s.value / shape.soft_cap);
    }
    return s;
  }

  // The derivative of the soft cap.
  Inexact<Real> slope(int64_t i, int64_t j) const {
    const Real cap = static_cast<Real>(check_.shape.soft_cap);
    if (!(cap > 0)) return {1, 0};
    const Inexact<Real> s = capped_score(i, j);
    const Real t = s.value / cap;
    return {1 - t * t, 2 * (s.error + 8 * u_ * std::fabs(s.value)) / cap + 4 * u_};
  }

  Real bias(int64_t i, int64_t j) const {
    const sparsek_attention_args& args = check_.args;
    const int64_t(&stride)[4] = args.stride_bias;
    return element_of(args.bias, args.bias_dtype,
                      batch_ * stride[0] + head_q_ * stride[1] + i * stride[2] + j * stride[3]);
  }

  // By the bits of a block, or by a bias of -Inf.
  bool is_hidden(int64_t i, int64_t j) const {
    const AttentionShape& shape = check_.shape;
    const sparsek_attention_args& args = check_.args;
    if (args.bias != nullptr && bias(i, j) == -std::numeric_limits<Real>::infinity()) return true;
    if (args.mask == nullptr) return false;
    const int64_t key_blocks = (shape.seq_k + shape.block_k - 1) / shape.block_k;
    const int32_t number = args.mask_index[(first_row_ + i / shape.block_q) * key_blocks + j / shape.block_k];
    if (number < 0 || number >= args.mask_blocks) return false;
    const int64_t words = (shape.block_k + 31) / 32, in_block = j % shape.block_k;
    const uint32_t word = args.mask[(number * shape.block_q + i % shape.block_q) * words + in_block / 32];
    return (word >> (in_block % 32) & 1) == 0;
  }

  static int64_t length(const int32_t* lengths, int64_t b, int64_t seq) {
    if (lengths == nullptr) return seq;
    return lengths[b] < 0 ? 0 : lengths[b] > seq ? seq : lengths[b];
  }

  void copy(std::vector<Real>& to, const void* data, const int64_t (&stride)[3], int64_t b, int64_t head, int64_t rows,
            int64_t size) const {
    to.resize(static_cast<size_t>(rows * size));
    for (int64_t i = 0; i < rows; ++i) {
      copy_row(to.data() + i * size, data, b * stride[0] + head * stride[1] + i * stride[2], size);
    }
  }
  // Keys or values of the batch, which may lie in pages. Those that are not there stay 0.
  void copy_keys(std::vector<Real>& to, const void* data, const int64_t (&stride)[3], int64_t head,
                 int64_t size) const {
    if (!has_pages(check_.args)) return copy(to, data, stride, batch_, head, length_k_, size);
    to.assign(static_cast<size_t>(length_k_ * size), 0);
    for (int64_t j = 0; j < length_k_; ++j) {
      if (!has_key(j)) continue;
      const int64_t in_page = j % check_.args.page_rows;
      copy_row(to.data() + j * size, data, page_of(j) * stride[0] + head * stride[1] + in_page * stride[2], size);
    }
  }
  void copy_row(Real* to, const void* data, int64_t at, int64_t size) const {
    for (int64_t d = 0; d < size; ++d) to[d] = element_of(data, check_.shape.dtype, at + d);
  }

  // scales: of heads, counted over the batches; null: 1.
  static void multiply(std::vector<Real>& rows, const float* scales, int64_t head) {
    if (scales == nullptr) return;
    for (Real& x : rows) x *= static_cast<Real>(scales[head]);
  }

  int64_t page_of(int64_t j) const {
    const sparsek_attention_args& args = check_.args;
    return args.page_table[batch_ * args.page_table_stride + j / args.page_rows];
  }
  // Whether the key does not lie in a page that is none of the cache.
  bool has_key(int64_t j) const {
    return !has_pages(check_.args) || (page_of(j) >= 0 && page_of(j) < check_.args.pages);
  }

  // Of two rows, with the error of the sum and of `more` roundings.
  Inexact<Real> product(const Real* a, const Real* b, int64_t size, int more) const {
    Real sum = 0, magnitude = 0;
    for (int64_t d = 0; d < size; ++d) {
      sum += a[d] * b[d];
      magnitude += std::fabs(a[d] * b[d]);
    }
    const Real n = static_cast<Real>(size + more);
    const Real nu = n * product_u_;
    return {sum, nu < 1 ? nu / (1 - nu) * magnitude + n * underflow_ : std::numeric_limits<Real>::infinity()};
  }

  Inexact<Real> exact_weight(const Inexact<Real>& s, int64_t i) const {
    const Real lse = lse_[i];
    if (lse == -std::numeric_limits<Real>::infinity()) return {0, 0};
    const Real value = std::exp(s.value - lse);
    const Real error = s.error + 8 * u_ * (std::fabs(s.value) + std::fabs(lse)) + 16 * u_;
    return {value, value * std::expm1(error) + underflow_};
  }

  static Inexact<Real> times(const Inexact<Real>& a, const Inexact<Real>& b) {
    return {a.value * b.value, std::fabs(a.value) * b.error + a.error * (std::fabs(b.value) + b.error)};
  }

  // To the operands' type, where the kernel does that before it multiplies.
  Inexact<Real> rounded(const Inexact<Real>& x) const {
    const Real p = check_.product_roundoff;
    return {x.value, x.error + p * (std::fabs(x.value) + x.error) + (x.error > 0 ? rounding_underflow_ : 0)};
  }

  const AttentionCheck& check_;
  const bool rounds_to_e4m3_;
  const Real product_u_, u_;
  const Real underflow_, rounding_underflow_;
  int64_t length_q_ = 0, length_k_ = 0, first_row_ = 0, batch_ = 0, head_q_ = 0;
  std::vector<Real> q_, k_, v_, o_, grad_o_, lse_;
  std::vector<Inexact<Real>> deltas_;
};

}  // namespace
}  // namespace sparsek::cpu

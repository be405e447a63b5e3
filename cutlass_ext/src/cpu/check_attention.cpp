// SPDX-License-Identifier: Apache-2.0
#include "cpu/check_attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/check_attention_pairs.h"
#include "cpu/check_judge.h"
#include "cpu/check_threads.h"
#include "cpu/cpu_count.h"
#include "cpu/floating_point.h"

namespace sparsek::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What sums up to an element of an output, and how far it may be off.
template <typename Real>
struct Sums {
  std::vector<Real> values, errors;
  void start(int64_t size) {
    values.assign(static_cast<size_t>(size), 0);
    errors.assign(static_cast<size_t>(size), 0);
  }
};

// Checks one output of one head: `lines` of them, of queries or keys.
template <typename Real>
class HeadChecker {
 public:
  explicit HeadChecker(const AttentionCheck& check)
      : check_(check), pairs_(check), type_(output_type(check.shape.dtype_o)), sum_type_(sum_type(check)) {}

  const Tally& tally() const { return tally_; }

  // head: counted over the batches; of queries, or for grad_k and grad_v of keys.
  void check(int64_t head) {
    const AttentionShape& shape = check_.shape;
    const bool of_keys = check_.output == SPARSEK_ATTENTION_GRAD_K || check_.output == SPARSEK_ATTENTION_GRAD_V;
    if (of_keys) return check_keys(head / shape.heads_k, head % shape.heads_k, head);
    pairs_.load(head / shape.heads_q, head % shape.heads_q);
    if (check_.output == SPARSEK_ATTENTION_MASS) return check_mass(head);
    if (check_.output == SPARSEK_ATTENTION_GRAD_BIAS) return check_bias(head);
    for (int64_t i = 0; i < shape.seq_q; ++i) {
      const int64_t row = head * shape.seq_q + i;
      if (check_.output == SPARSEK_ATTENTION_GRAD_Q) {
        check_query(i, row);
      } else {
        check_weights(i, row);
      }
    }
  }

 private:
  static OutputType sum_type(const AttentionCheck& check) {
    return output_type(check.shape.dtype == SPARSEK_FP64 ? SPARSEK_FP64 : SPARSEK_FP32);
  }

  static double gamma(double n, double u) { return n * u < 1 ? n * u / (1 - n * u) : kInfinity; }
  double gamma(double n) const { return gamma(n, pairs_.u()); }

  // What adding up the products of `keys` weights and values takes off or adds, as a share of their magnitudes.
  double error_of_products(double keys, double steps) const {
    if (!pairs_.rounds_to_e4m3()) return gamma(keys + steps + 8);
    const double together = std::min(keys, double{kE4m3SumKeys});
    return (1 + gamma(together + 8, check_.unit_roundoff)) * (1 + gamma(keys / kE4m3SumKeys + 2 * steps + 8)) - 1;
  }

  void judge(int64_t row, int64_t col, double c, Real value, Real bound, const OutputType& type) {
    const double v = static_cast<double>(value);
    const double b = std::isnan(bound) ? kInfinity : static_cast<double>(bound);
    tally_.judge(row, col, c, {v, b + type.unit_roundoff * std::fabs(v) + type.half_subnormal}, type);
  }

  // A row of O or of a gradient, which are of one type.
  void judge_row(const void* data, const int64_t (&stride)[3], int64_t heads, int64_t seq, int64_t row, int64_t size) {
    const int64_t b = row / seq / heads, h = row / seq % heads, i = row % seq;
    for (int64_t d = 0; d < size; ++d) {
      const double c = element_of(data, check_.shape.dtype_o, b * stride[0] + h * stride[1] + i * stride[2] + d);
      const size_t at = static_cast<size_t>(d);
      if (sums_.values[at] == 0 && sums_.errors[at] == 0) {
        tally_.judge(row, d, c, {0, 0}, type_);
      } else {
        judge(row, d, c, sums_.values[at], sums_.errors[at], type_);
      }
    }
  }

  // O or LSE of a query.
  void check_weights(int64_t i, int64_t row) {
    const AttentionShape& shape = check_.shape;
    const double u = pairs_.u();
    seen_.clear();
    Real max = -std::numeric_limits<Real>::infinity(), most = 0;
    bool has_nan = false;
    const int64_t blocks = pairs_.for_keys(i, [&](int64_t j) {
      seen_.push_back({j, pairs_.score(i, j)});
      const Real s = seen_.back().score.value;
      has_nan = has_nan || std::isnan(s);
      max = std::max(max, s);
      most = std::max(most, std::fabs(s));
    });
    const double count = static_cast<double>(seen_.size()), steps = static_cast<double>(blocks) + count / 64;
    sums_.start(shape.head_size_v);
    if (!has_nan && max == -std::numeric_limits<Real>::infinity()) {
      if (check_.output == SPARSEK_ATTENTION_O) return judge_output(row);
      return tally_.judge(row, 0, lse_at(row), {-kInfinity, 0}, sum_type_);
    }
    Real total = 0, share = 0;
    for (Seen& own : seen_) {
      own.weight = std::exp(own.score.value - max);
      total += own.weight;
    }
    const Real of_sum = gamma(count + steps + 8), of_products = error_of_products(count, steps);
    Real greatest = 0;
    for (Seen& own : seen_) {
      own.weight /= total;
      const Real factor = std::exp(own.score.error + 8 * u * most + (8 * steps + 16) * u);
      own.error = factor * (1 + of_products) - 1;
      share += own.weight * (factor * (1 + of_sum) - 1) + pairs_.underflow();
      greatest = std::max(greatest, own.weight * (1 + own.error));
    }
    const Real underflow = pairs_.weight_underflow(greatest);
    if (check_.output == SPARSEK_ATTENTION_LSE) {
      const Real lse = has_nan ? std::numeric_limits<Real>::quiet_NaN() : max + std::log(total);
      const Real bound = share < 1 ? -std::log(1 - share) + 8 * u * (1 + std::fabs(lse) + most) : kInfinity;
      return judge(row, 0, lse_at(row), lse, bound, sum_type_);
    }
    const Real p = check_.product_roundoff;
    for (const Seen& own : seen_) {
      const Real* const v = pairs_.v(own.key);
      for (int64_t d = 0; d < shape.head_size_v; ++d) {
        sums_.values[d] += own.weight * v[d];
        sums_.errors[d] += std::fabs(v[d]) * (own.weight * (own.error + p * (1 + own.error)) + underflow);
      }
    }
    for (int64_t d = 0; d < shape.head_size_v; ++d) {
      sums_.errors[d] = share < 1 ? (sums_.errors[d] + std::fabs(sums_.values[d]) * (share + 4 * u)) / (1 - share)
                                  : static_cast<Real>(kInfinity);
    }
    judge_output(row);
  }

  // The blocks of a head, each of its rows of blocks a row of the output.
  void check_mass(int64_t head) {
    const AttentionShape& shape = check_.shape;
    const int64_t blocks = shape.key_blocks();
    const int32_t type = shape.dtype == SPARSEK_FP64 ? SPARSEK_FP64 : SPARSEK_FP32;
    const Real rounding = gamma(static_cast<double>(shape.block_q * shape.block_k) + 8);
    for (int64_t block = 0; block < shape.query_blocks(); ++block) {
      sums_.start(blocks);
      for (int64_t i = block * shape.block_q; i < std::min((block + 1) * shape.block_q, shape.seq_q); ++i) {
        pairs_.for_keys(i, [&](int64_t j) {
          const Inexact<Real> weight = pairs_.unrounded_weight(i, j);
          const auto at = static_cast<size_t>(j / shape.block_k);
          sums_.values[at] += weight.value;
          sums_.errors[at] += weight.error + rounding * (weight.value + weight.error);
        });
      }
      const int64_t row = head * shape.query_blocks() + block;
      for (int64_t j = 0; j < blocks; ++j) {
        const auto at = static_cast<size_t>(j);
        judge(row, j, element_of(check_.args.mass, type, row * blocks + j), sums_.values[at], sums_.errors[at],
              sum_type_);
      }
    }
  }

  // The gradient of the bias of a head, a row for each query.
  void check_bias(int64_t head) {
    const AttentionShape& shape = check_.shape;
    const int32_t type = shape.dtype == SPARSEK_FP64 ? SPARSEK_FP64 : SPARSEK_FP32;
    for (int64_t i = 0; i < shape.seq_q; ++i) {
      sums_.start(shape.seq_k);
      pairs_.for_keys(i, [&](int64_t j) {
        const Inexact<Real> own = pairs_.unrounded_gradient(i, j);
        sums_.values[static_cast<size_t>(j)] = own.value;
        sums_.errors[static_cast<size_t>(j)] = own.error;
      });
      const int64_t row = head * shape.seq_q + i;
      for (int64_t j = 0; j < shape.seq_k; ++j) {
        const auto at = static_cast<size_t>(j);
        const double c = element_of(check_.args.grad_bias, type, row * shape.seq_k + j);
        if (sums_.values[at] == 0 && sums_.errors[at] == 0) {
          tally_.judge(row, j, c, {0, 0}, sum_type_);
        } else {
          judge(row, j, c, sums_.values[at], sums_.errors[at], sum_type_);
        }
      }
    }
  }

  void judge_output(int64_t row) {
    judge_row(check_.args.o, check_.args.stride_o, check_.shape.heads_q, check_.shape.seq_q, row,
              check_.shape.head_size_v);
  }
  double lse_at(int64_t row) const {
    return element_of(check_.args.lse, check_.shape.dtype == SPARSEK_FP64 ? SPARSEK_FP64 : SPARSEK_FP32, row);
  }

  // Adds factor[d] * x.value to the sums. count: products that are summed into each.
  void add(const Inexact<Real>& x, const Real* factor, int64_t size, double count) {
    const Real rounding = gamma(count + 4) * (std::fabs(x.value) + x.error);
    for (int64_t d = 0; d < size; ++d) {
      sums_.values[d] += x.value * factor[d];
      sums_.errors[d] += (x.error + rounding) * std::fabs(factor[d]);
    }
  }

  void multiply(Real factor) {
    for (Real& value : sums_.values) value *= factor;
    for (Real& error : sums_.errors) error *= std::fabs(factor);
  }

  void check_query(int64_t i, int64_t row) {
    const AttentionShape& shape = check_.shape;
    sums_.start(shape.head_size);
    pairs_.for_keys(i, [&](int64_t j) {
      add(pairs_.gradient(i, j), pairs_.k(j), shape.head_size, static_cast<double>(shape.seq_k));
    });
    multiply(static_cast<Real>(shape.scale));
    judge_row(check_.args.grad_q, check_.args.stride_grad_q, shape.heads_q, shape.seq_q, row, shape.head_size);
  }

  // All keys of a head, which several heads of queries have.
  void check_keys(int64_t b, int64_t head_k, int64_t head) {
    const AttentionShape& shape = check_.shape;
    const bool of_v = check_.output == SPARSEK_ATTENTION_GRAD_V;
    const int64_t group = shape.heads_q / shape.heads_k, size = of_v ? shape.head_size_v : shape.head_size;
    std::vector<Sums<Real>> all(static_cast<size_t>(shape.seq_k));
    for (Sums<Real>& own : all) own.start(size);
    const double count = static_cast<double>(group * shape.seq_q);
    for (int64_t g = 0; g < group; ++g) {
      pairs_.load(b, head_k * group + g);
      for (int64_t i = 0; i < shape.seq_q; ++i) {
        pairs_.for_keys(i, [&](int64_t j) {
          std::swap(sums_, all[static_cast<size_t>(j)]);
          of_v ? add(pairs_.weight(i, j), pairs_.grad_o(i), size, count)
               : add(pairs_.gradient(i, j), pairs_.q(i), size, count);
          std::swap(sums_, all[static_cast<size_t>(j)]);
        });
      }
    }
    for (int64_t j = 0; j < shape.seq_k; ++j) {
      sums_ = all[static_cast<size_t>(j)];
      if (!of_v) multiply(static_cast<Real>(shape.scale));
      const auto& args = check_.args;
      judge_row(of_v ? args.grad_v : args.grad_k, of_v ? args.stride_grad_v : args.stride_grad_k, shape.heads_k,
                shape.seq_k, head * shape.seq_k + j, size);
    }
  }

  // A key that a query sees.
  struct Seen {
    int64_t key;
    Inexact<Real> score;
    Real weight = 0, error = 0;  // of the softmax, and its error as a share
  };

  const AttentionCheck& check_;
  Pairs<Real> pairs_;
  const OutputType type_, sum_type_;
  Tally tally_;
  std::vector<Seen> seen_;
  Sums<Real> sums_;
};

template <typename Real>
void check_as(const AttentionCheck& check, sparsek_check_report& report) {
  const bool of_keys = check.output == SPARSEK_ATTENTION_GRAD_K || check.output == SPARSEK_ATTENTION_GRAD_V;
  const int64_t heads = check.shape.batch * (of_keys ? check.shape.heads_k : check.shape.heads_q);
  const int64_t wanted = check.threads > 0 ? check.threads : usable_cpu_count();
  std::vector<HeadChecker<Real>> workers(static_cast<size_t>(std::clamp<int64_t>(heads, 1, wanted)),
                                         HeadChecker<Real>(check));
  std::atomic<int64_t> next{0};
  run_checkers(workers, [&](HeadChecker<Real>& own) {
    const DefaultFloatingPoint floating_point;
    for (int64_t head = next++; head < heads; head = next++) own.check(head);
  });
  Tally total;
  for (const HeadChecker<Real>& own : workers) total.merge(own.tally());
  total.write(report);
}

}  // namespace

void check_attention(const AttentionCheck& check, sparsek_check_report& report) {
  if (check.shape.dtype == SPARSEK_FP64) {
    check_as<long double>(check, report);
  } else {
    check_as<double>(check, report);
  }
}

}  // namespace sparsek::cpu

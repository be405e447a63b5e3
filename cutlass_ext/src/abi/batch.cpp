// SPDX-License-Identifier: Apache-2.0
#include "abi/batch.h"

#include <cinttypes>

#include "abi/dtype.h"
#include "abi/handles.h"
#include "abi/multiply_args.h"
#include "abi/product_form.h"
#include "abi/require.h"

namespace sparsek {
namespace {

// What the products of a batch read or write one after the other.
struct Step {
  int64_t bytes;  // from one product to the next

  Step(int64_t stride, int64_t element, int32_t batch, const char* name) : bytes(0) {
    if (stride < 0) fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " is negative", name, stride);
    int64_t all = 0;
    if (__builtin_mul_overflow(stride, element, &bytes) || __builtin_mul_overflow(bytes, batch, &all)) {
      fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " elements, %d times, do not fit in an address space", name, stride,
           batch);
    }
  }

  template <class T>
  T* at(T* first, int32_t index) const {
    return first == nullptr ? nullptr : reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(first) + index * bytes);
  }
  // Of `all` bytes, those from product `index` on; 0, where nobody says how many there are, stays 0.
  int64_t left(int64_t all, int32_t index, const char* name) const {
    if (all != 0 && all <= index * bytes) {
      fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " ends before product %d of the batch", name, all, index);
    }
    return all == 0 ? 0 : all - index * bytes;
  }
};

void require_results_apart(const std::vector<MultiplyArgs>& products, const BsrShape& shape,
                           const PlanOptions& options) {
  const int64_t element = dtype_bytes(options.dtype_c);
  const auto result = [&](const MultiplyArgs& product) {
    const Lines lines = lines_of_c(options.op, shape, product.n, options.order_c);
    return ByteRows{product.c, lines.count, lines.length * element, product.ldc * element};
  };
  // All steps are equal: so any two products are as far apart as the first and some other.
  for (size_t i = 1; i < products.size(); ++i) {
    if (overlap(result(products[0]), result(products[i]))) {
      fail(SPARSEK_BAD_ARGUMENT, "args->stride_c: C of product 0 and of product %zu of the batch overlap", i);
    }
  }
}

}  // namespace

std::vector<MultiplyArgs> resolve_batch(const sparsek_plan& plan, const sparsek_multiply_args& given) {
  const MatrixState& matrix = *plan.matrix->state;
  const int64_t element_c = dtype_bytes(plan.options.dtype_c);
  const Step b(given.stride_b, dtype_bytes(plan.options.dtype_b), given.batch, "args->stride_b");
  const Step c(given.stride_c, element_c, given.batch, "args->stride_c");
  const Step values(given.stride_values, dtype_bytes(matrix.dtype), given.batch, "args->stride_values");
  const Step x(given.stride_x, dtype_bytes(matrix.dtype), given.batch, "args->stride_x");
  const Step bias(given.stride_bias, element_c, given.batch, "args->stride_bias");
  if (given.values == nullptr && given.stride_values != 0) {
    fail(SPARSEK_BAD_ARGUMENT, "args->stride_values = %" PRId64 " without args->values", given.stride_values);
  }
  std::vector<MultiplyArgs> products;
  products.reserve(static_cast<size_t>(given.batch));
  for (int32_t i = 0; i < given.batch; ++i) {
    sparsek_multiply_args one = given;
    one.b = b.at(given.b, i);
    one.c = c.at(given.c, i);
    one.x = x.at(given.x, i);
    if (given.ldc_in != kOneRow) one.c_in = c.at(given.c_in, i);
    one.values = values.at(given.values, i);
    one.bias = bias.at(given.bias, i);
    one.bytes_b = b.left(given.bytes_b, i, "args->bytes_b");
    one.bytes_x = x.left(given.bytes_x, i, "args->bytes_x");
    one.bytes_c = c.left(given.bytes_c, i, "args->bytes_c");
    products.push_back(resolve_multiply_args(plan, one));
  }
  require_results_apart(products, written_shape(plan), plan.options);
  return products;
}

}  // namespace sparsek

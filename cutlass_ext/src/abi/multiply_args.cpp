// SPDX-License-Identifier: Apache-2.0
#include "abi/multiply_args.h"

#include <algorithm>
#include <cinttypes>

#include "abi/dtype.h"
#include "abi/handles.h"
#include "abi/product_form.h"
#include "abi/require.h"
#include "abi/served.h"

namespace sparsek {
namespace {

int64_t product_columns(int64_t given, int64_t planned) {
  if (given < 0 || given > planned) {
    fail(SPARSEK_BAD_SIZE, "args->n = %" PRId64 " is not in [0, %" PRId64 "], the columns that were planned for", given,
         planned);
  }
  return given == 0 ? planned : given;
}

// A dense operand of a product, (rows, n):(ld, 1), its columns if it is column-major, and how its members are called.
struct Dense {
  const void* data;
  int64_t rows, n, ld, element;
  const char *name, *ld_name;

  ByteRows bytes() const { return {data, rows, n * element, ld * element}; }
  // From the first element to behind the last.
  int64_t extent() const { return rows == 0 || n == 0 ? 0 : ((rows - 1) * ld + n) * element; }
};

// The stride of a product: where it is not given, the planned one. Whoever says how much memory there is means what he
// says: a stride of 0 is then one of a view that repeats its rows, unless it can only mean rows without gaps.
int64_t product_stride(int64_t given, int64_t planned, int64_t planned_length, int64_t bytes, const char* name) {
  if (given == 0 && bytes != 0 && planned != planned_length) {
    fail(SPARSEK_BAD_LEADING_DIMENSION,
         "%s = 0 where the plan has gaps between rows (%" PRId64
         " elements from row to row): give it together with "
         "the bytes of the operand",
         name, planned);
  }
  return given == 0 ? planned : given;
}

void require_extent(const Dense& operand, int64_t bytes, const char* bytes_name) {
  if (bytes < 0) fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " is negative", bytes_name, bytes);
  if (bytes != 0 && bytes < operand.extent()) {
    fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " is below the %" PRId64 " bytes of %" PRId64 " rows with %s = %" PRId64,
         bytes_name, bytes, operand.extent(), operand.rows, operand.ld_name, operand.ld);
  }
}

// An operand's address, for the alignment that the plan was made for, which is at least its element's.
void require_planned_alignment(const Dense& operand, int32_t alignment) {
  const auto wanted = static_cast<uintptr_t>(std::max<int64_t>(alignment, operand.element));
  const auto address = reinterpret_cast<uintptr_t>(operand.data);
  if (address % wanted == 0) return;
  if (address % static_cast<uintptr_t>(operand.element) != 0) {
    return require_aligned(operand.data, operand.element, operand.name);
  }
  fail(SPARSEK_MISALIGNED,
       "%s = %p is not aligned to %zu bytes, as the plan expects: align it, or set options->alignment when the plan is "
       "made",
       operand.name, operand.data, static_cast<size_t>(wanted));
}

// An operand without elements may be null.
void require_operand(const Dense& operand, int32_t alignment) {
  require_dense(operand.rows, operand.n, operand.ld, operand.element, operand.ld_name);
  if (operand.rows > 0 && operand.n > 0) require_not_null(operand.data, operand.name);
  require_planned_alignment(operand, alignment);
}

// A bias that is not read would be an unnoticed mistake of the caller.
void require_bias(const void* bias, const PlanOptions& options) {
  if (options.bias == SPARSEK_BIAS_NONE) {
    if (bias != nullptr) {
      fail(SPARSEK_BAD_ARGUMENT, "args->bias is given to a plan without one: set options->bias when it is made");
    }
    return;
  }
  require_aligned(bias, dtype_bytes(options.dtype_c), "args->bias");
}

void require_types(const sparsek_multiply_args& given, sparsek_dtype dtype_b) {
  if (given.dtype_b != 0 && given.dtype_b != dtype_b) {
    fail(SPARSEK_UNSUPPORTED_DTYPE, "args->dtype_b = %d is not %d, the type that the plan is for", given.dtype_b,
         static_cast<int>(dtype_b));
  }
}

// What is written must not be read by the same product, whose elements are computed in any order.
void require_apart(const ByteRows& c, const ByteRows& other, const char* name) {
  if (overlap(c, other)) fail(SPARSEK_BAD_ARGUMENT, "%s and args->c overlap: a product needs a C of its own", name);
}

ByteRows array(const void* data, int64_t bytes) { return {data, 1, bytes, bytes}; }

int64_t value_bytes(const MatrixState& matrix) { return block_elements(matrix.shape()) * dtype_bytes(matrix.dtype); }

void resolve_values(const sparsek_plan& plan, const sparsek_multiply_args& given, const ByteRows& c,
                    MultiplyArgs& args) {
  const MatrixState& matrix = *plan.matrix->state;
  if (plan.options.op == SPARSEK_SDD) {
    if (given.values != nullptr) fail(SPARSEK_BAD_ARGUMENT, "args->values: SPARSEK_SDD writes blocks, to args->c");
    return;
  }
  if (given.values == nullptr) return require_values(*plan.matrix);
  if (matrix.shape().nnzb == 0) return;
  args.values = given.values;
  require_aligned(given.values, dtype_bytes(matrix.dtype), "args->values");
  require_apart(c, array(given.values, value_bytes(matrix)), "args->values");
}

// What beta is multiplied with: C, or where it is given, another matrix. rows_of_c, row: how many rows C has as the
// caller has it, and their length.
void resolve_input(const sparsek_multiply_args& given, const Dense& c, int64_t rows_of_c, int64_t row,
                   MultiplyArgs& args) {
  args.c_in = args.c;
  args.ldc_in = args.ldc;
  if (given.c_in == nullptr) {
    if (given.ldc_in != 0) fail(SPARSEK_BAD_ARGUMENT, "args->ldc_in = %" PRId64 " without args->c_in", given.ldc_in);
    return;
  }
  const bool one_row = given.ldc_in == kOneRow;
  const int64_t ld = one_row ? row : given.ldc_in == 0 ? args.ldc : given.ldc_in;
  const int64_t rows = one_row ? std::min<int64_t>(c.rows, 1) : c.rows;
  const Dense input = {given.c_in, rows, one_row ? row : c.n, ld, c.element, "args->c_in", "args->ldc_in"};
  require_operand(input, 1);
  const bool is_c = given.c_in == args.c && (one_row ? rows_of_c < 2 : c.rows < 2 || ld == args.ldc);
  if (!is_c) require_apart(c.bytes(), input.bytes(), "args->c_in");
  args.c_in = given.c_in;
  args.ldc_in = one_row ? 0 : ld;
}

void resolve_scalars(const sparsek_multiply_args& given, MultiplyArgs& args) {
  require_finite(given.alpha, "args->alpha");
  require_finite(given.beta, "args->beta");
  require_aligned(given.alpha_device, alignof(float), "args->alpha_device");
  require_aligned(given.beta_device, alignof(float), "args->beta_device");
  args.alpha = given.alpha;
  args.beta = given.beta;
  args.alpha_device = given.alpha_device;
  args.beta_device = given.beta_device;
}

void resolve_workspace(const sparsek_plan& plan, const sparsek_multiply_args& given, const Dense& b, const Dense& c,
                       MultiplyArgs& args) {
  constexpr int64_t kAlignment = 256;
  if (given.workspace == nullptr) {
    if (given.workspace_bytes != 0) {
      fail(SPARSEK_NULL_POINTER, "args->workspace is null and args->workspace_bytes = %zu", given.workspace_bytes);
    }
    return;
  }
  const size_t needed = plan.state->product_bytes();
  if (given.workspace_bytes < needed) {
    fail(SPARSEK_BAD_SIZE, "args->workspace_bytes = %zu is below the %zu bytes that a product of the plan needs",
         given.workspace_bytes, needed);
  }
  require_aligned(given.workspace, kAlignment, "args->workspace");
  const ByteRows memory = array(given.workspace, static_cast<int64_t>(needed));
  require_apart(c.bytes(), memory, "args->workspace");
  if (overlap(b.bytes(), memory)) fail(SPARSEK_BAD_ARGUMENT, "args->workspace and args->b overlap");
  args.workspace = given.workspace;
}

Dense resolve_b(const sparsek_plan& plan, const sparsek_multiply_args& given, MultiplyArgs& args) {
  const PlanOptions& options = plan.options;
  const MatrixState& matrix = *plan.matrix->state;
  const auto lines = [&](int64_t n) { return lines_of_b(options.op, matrix.shape(), n, options.order_b); };
  args.b = given.b;
  args.ldb = product_stride(given.ldb, options.ldb, lines(options.n).length, given.bytes_b, "args->ldb");
  const Lines of_product = lines(args.n);
  const Dense b = {args.b,    of_product.count, of_product.length, args.ldb, dtype_bytes(plan.options.dtype_b),
                   "args->b", "args->ldb"};
  require_operand(b, options.alignment);
  require_extent(b, given.bytes_b, "args->bytes_b");
  return b;
}

Dense resolve_c(const sparsek_plan& plan, const sparsek_multiply_args& given, MultiplyArgs& args) {
  const PlanOptions& options = plan.options;
  const auto lines = [&](int64_t n) { return lines_of_c(options.op, written_shape(plan), n, options.order_c); };
  if (options.op == SPARSEK_SDD && (given.ldc != 0 || given.ldc_in != 0)) {
    fail(SPARSEK_BAD_ARGUMENT,
         "args->ldc = %" PRId64 ", args->ldc_in = %" PRId64
         ": the blocks of SPARSEK_SDD follow each other, set both to 0",
         given.ldc, given.ldc_in);
  }
  args.c = given.c;
  args.ldc = options.op == SPARSEK_SDD
                 ? lines(options.n).length
                 : product_stride(given.ldc, options.ldc, lines(options.n).length, given.bytes_c, "args->ldc");
  const Lines of_product = lines(args.n);
  const Dense c = {args.c,    of_product.count, of_product.length, args.ldc, dtype_bytes(options.dtype_c),
                   "args->c", "args->ldc"};
  require_operand(c, options.alignment_c);
  require_extent(c, given.bytes_c, "args->bytes_c");
  return c;
}

void resolve_x(const sparsek_plan& plan, const sparsek_multiply_args& given, const Dense& c, MultiplyArgs& args) {
  const PlanOptions& options = plan.options;
  if (options.op != SPARSEK_SDD) {
    if (given.x != nullptr || given.ldx != 0 || given.bytes_x != 0) {
      fail(SPARSEK_BAD_ARGUMENT, "args->x, args->ldx or args->bytes_x is not 0: X is SPARSEK_SDD's");
    }
    return;
  }
  const MatrixState& matrix = *plan.matrix->state;
  const auto lines = [&](int64_t n) { return lines_of_x(matrix.shape(), n, options.order_x); };
  args.x = given.x;
  args.ldx = product_stride(given.ldx, options.ldx, lines(options.n).length, given.bytes_x, "args->ldx");
  const Lines of_product = lines(args.n);
  const Dense x = {args.x,    of_product.count, of_product.length, args.ldx, dtype_bytes(matrix.dtype),
                   "args->x", "args->ldx"};
  require_operand(x, options.alignment);
  require_extent(x, given.bytes_x, "args->bytes_x");
  require_apart(c.bytes(), x.bytes(), "args->x");
}

}  // namespace

BsrShape written_shape(const sparsek_plan& plan) {
  BsrShape shape = plan.matrix->state->shape();
  if (plan.options.op == SPARSEK_SDD) shape.nnzb = plan.state->blocks();
  return shape;
}

MultiplyArgs resolve_multiply_args(const sparsek_plan& plan, const sparsek_multiply_args& given) {
  const PlanOptions& options = plan.options;
  const MatrixState& matrix = *plan.matrix->state;
  const BsrShape& shape = matrix.shape();
  require_served(given);
  require_types(given, options.dtype_b);
  MultiplyArgs args = {};
  resolve_scalars(given, args);
  args.n = product_columns(given.n, options.n);
  args.stream = given.stream;
  args.trusted = (given.flags & SPARSEK_TRUSTED) != 0;
  const Dense b = resolve_b(plan, given, args), c = resolve_c(plan, given, args);
  require_apart(c.bytes(), b.bytes(), "args->b");
  resolve_x(plan, given, c, args);
  require_bias(given.bias, options);
  if (options.bias != SPARSEK_BIAS_NONE && c.rows > 0 && c.n > 0) require_not_null(given.bias, "args->bias");
  args.bias = given.bias;
  const int64_t outer = outer_extent(options.op, shape);
  if (args.bias != nullptr) {
    const int64_t count = options.bias == SPARSEK_BIAS_ROW ? outer : args.n;
    require_apart(c.bytes(), array(args.bias, count * c.element), "args->bias");
  }
  resolve_values(plan, given, c.bytes(), args);
  const bool over = is_turned_over(options.op);
  resolve_input(given, c, over ? args.n : outer, over ? outer : args.n, args);
  resolve_workspace(plan, given, b, c, args);
  return args;
}

}  // namespace sparsek

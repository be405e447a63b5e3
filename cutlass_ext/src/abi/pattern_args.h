// SPDX-License-Identifier: Apache-2.0
// Checks of sparsek_pattern_args, and what they say. Each throws Error, naming the member.
#pragma once

#include <cstdint>

#include "pattern/job.h"
#include "sparsek.h"

namespace sparsek {

// Members that only some functions read.
enum Reads : unsigned {
  kValues = 1,
  kBlockIdx = 2,
  kSource = 4,
  kIndexSource = 8,
  kNorms = 16,
  kThreshold = 32,
  kCount = 64,
  kBits = 128,
  kLd = 256,
  kRowIdx = 512,
};

// Where there are no values, a type of elements that the sizes are checked with.
constexpr int32_t kNoValues = SPARSEK_BF16;

// What this function does not read is 0.
void require_unread(const sparsek_pattern_args& args, unsigned reads);
void require_index_type(int32_t type, const char* what);
void require_norm(int32_t norm);
void require_threshold(double threshold);
// There is a source, where it has elements.
void require_source(const sparsek_pattern_args& args, int64_t elements);

pattern::IndexArray index_array(const void* data, int32_t type, const char* what);
// The index to be made. values_dtype: of values, also where they are not wanted.
void read_made(const sparsek_pattern_args& args, int32_t values_dtype, pattern::MakeJob& job);
// Elements of source from one of its `lines` lines of `length` to the next.
int64_t read_ld(const sparsek_pattern_args& args, int64_t lines, int64_t length, int64_t bytes);
// Scores of a place for each block.
void read_scores(const sparsek_pattern_args& args, pattern::MakeJob& job);
// An index that is read, of the memory and in the stream of what is made.
pattern::Given read_from(const sparsek_bsr* bsr, const sparsek_pattern_args& args, const char* what);

}  // namespace sparsek

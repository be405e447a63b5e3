// SPDX-License-Identifier: Apache-2.0
// The block columns of bundles of block rows as bits, laid out so that one bundle is compared with many at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/pairing.h"

namespace sparsek {

// Bits (words, bundles):(stride, 1): bit b of word w of a bundle says whether it has column 32 w + b.
class ColumnBits {
 public:
  // All clear.
  ColumnBits(size_t words, int32_t bundles);

  size_t words() const { return words_; }
  // In words; a whole number of steps of the comparison. The bits of bundles beyond the last are clear.
  size_t stride() const { return stride_; }
  uint32_t* word(size_t w) { return data()->lane + w * stride_; }
  const uint32_t* word(size_t w) const { return data()->lane + w * stride_; }

  // The bits that are set, in all bundles.
  int64_t count() const;

 private:
  friend class Unpaired;
  struct alignas(64) Lanes {
    uint32_t lane[16];
  };
  Lanes* data() { return lanes_.data(); }
  const Lanes* data() const { return lanes_.data(); }

  size_t words_, stride_;
  std::vector<Lanes> lanes_;
};

// The bundles that have no partner yet, each with the number of its stored blocks.
class Unpaired {
 public:
  // blocks: of each bundle, all together within int32.
  Unpaired(const ColumnBits& columns, const std::vector<int32_t>& blocks);

  // The merit of the best partner of bundle i, or kNoMerit where none is left with which it has at most `most` blocks.
  Merit best(int32_t i, int64_t most);
  void remove(int32_t i);

 private:
  void pack();

  ColumnBits columns_;
  // For each bundle in columns_, in the same order; padded to the stride.
  std::vector<int32_t> number_;
  std::vector<int32_t> blocks_;  // kGone: has a partner, or is none
  std::vector<int32_t> place_;   // of the bundle with that number
  int32_t width_, left_;
};

}  // namespace sparsek

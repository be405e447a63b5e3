// SPDX-License-Identifier: Apache-2.0
// The memory of plans, with the host's memory for the device's: what is written there is what was given, however it is
// cut into pieces; and nothing stays behind, whichever call fails.
// Prints the first difference and exits with 1.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "abi/error.h"
#include "cuda/plan_memory.h"

namespace sparsek::cuda {

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail(SPARSEK_OUT_OF_MEMORY, "%s", call);
}

}  // namespace sparsek::cuda

namespace {

using sparsek::cuda::HostPart;
using sparsek::cuda::MemoryPool;
using sparsek::cuda::PlanMemory;

std::mt19937 random_bits(3);
size_t draw(size_t low, size_t high) { return std::uniform_int_distribution<size_t>(low, high)(random_bits); }

#define REQUIRE(condition)                                \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                       \
    }                                                     \
  } while (0)

// Some arrays, short, empty or longer than a piece, with gaps between them.
struct Arrays {
  std::vector<std::vector<unsigned char>> data;
  std::vector<HostPart> parts;
  size_t bytes = 1;
};

Arrays random_arrays() {
  constexpr size_t kPiece = size_t{1} << 20;
  Arrays arrays;
  for (size_t left = draw(1, 6); left > 0; --left) {
    const size_t kinds[] = {0, draw(1, 100), draw(kPiece - 2, kPiece + 2), draw(0, 3 * kPiece)};
    std::vector<unsigned char> one(kinds[draw(0, 3)]);
    for (auto& byte : one) byte = static_cast<unsigned char>(random_bits());
    const size_t at = arrays.bytes - 1 + (draw(0, 4) == 0 ? draw(0, 3 * kPiece) : draw(0, 256));
    arrays.data.push_back(std::move(one));
    arrays.parts.push_back({arrays.data.back().data(), arrays.data.back().size(), at});
    arrays.bytes = at + arrays.data.back().size() + 1;
  }
  return arrays;
}

void check_writes() {
  MemoryPool pool(0);
  PlanMemory memory(pool);
  for (int round = 0; round < 60; ++round) {
    const Arrays arrays = random_arrays();
    const PlanMemory::Block block = memory.allocate(arrays.bytes);
    REQUIRE(block.bytes() == arrays.bytes);
    const int before = cuda_on_host::copies;
    memory.write(block, arrays.parts);
    REQUIRE(cuda_on_host::copies - before <= static_cast<int>(arrays.bytes >> 20) + 1);
    for (const HostPart& part : arrays.parts) {
      REQUIRE(std::memcmp(block.data() + part.at, part.from, part.bytes) == 0);
    }
  }
  const PlanMemory::Block block = memory.allocate(16);
  const long long value = 0x123456789abcdef;
  memory.write(block, {{&value, sizeof(value), 8}});
  REQUIRE(memory.read(reinterpret_cast<const long long*>(block.data() + 8)) == value);
}

void check_moves() {
  MemoryPool pool(0);
  PlanMemory memory(pool);
  const int alive = cuda_on_host::alive;
  PlanMemory::Block one = memory.allocate(10), other = memory.allocate(20);
  std::byte* const first = one.data();
  other = std::move(one);
  REQUIRE(other.data() == first && other.bytes() == 10);
  const PlanMemory::Block third = std::move(other);
  REQUIRE(third.data() == first);
  {
    const PlanMemory::Block gone = std::move(one);
  }
  REQUIRE(cuda_on_host::alive == alive + 1);
}

// Makes memory and uses it, with one of the calls failing.
bool failed_at(int call) {
  cuda_on_host::calls = 0;
  cuda_on_host::failing_call = call;
  bool failed = false;
  try {
    MemoryPool pool(0);
    PlanMemory memory(pool);
    const PlanMemory::Block block = memory.allocate(64);
    const int value = 1;
    memory.write(block, {{&value, sizeof(value), 0}});
    memory.read(reinterpret_cast<const int*>(block.data()));
  } catch (const sparsek::Error&) {
    failed = true;
  }
  cuda_on_host::failing_call = -1;
  REQUIRE(cuda_on_host::alive == 0);
  return failed;
}

}  // namespace

int main() {
  check_writes();
  check_moves();
  REQUIRE(cuda_on_host::alive == 0);
  int call = 0;
  while (failed_at(call)) ++call;
  REQUIRE(call == 9);  // four of the constructor, the allocation, two for each copy
}

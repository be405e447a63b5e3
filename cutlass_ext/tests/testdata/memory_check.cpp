// SPDX-License-Identifier: Apache-2.0
// The memory of plans, with the host's memory for the device's: what is written there is what was given, however it is
// cut into pieces; nothing stays behind, whichever call fails; and nothing is freed while work in a stream uses it.
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

// Products are not run here.
TileCounters::TileCounters(cudaStream_t stream) : stream_(stream) {}
void TileCounters::clear() {}

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
  PlanMemory memory(pool, 0);
  for (int round = 0; round < 60; ++round) {
    const Arrays arrays = random_arrays();
    const PlanMemory::Block block = memory.allocate(arrays.bytes, nullptr);
    REQUIRE(block.bytes() == arrays.bytes);
    const int before = cuda_on_host::copies;
    memory.write(block, arrays.parts);
    REQUIRE(cuda_on_host::copies - before <= static_cast<int>(arrays.bytes >> 20) + 1);
    for (const HostPart& part : arrays.parts) {
      REQUIRE(std::memcmp(block.data() + part.at, part.from, part.bytes) == 0);
    }
  }
  const PlanMemory::Block block = memory.allocate(16, nullptr);
  const long long value = 0x123456789abcdef;
  memory.write(block, {{&value, sizeof(value), 8}});
  REQUIRE(memory.read(reinterpret_cast<const long long*>(block.data() + 8)) == value);
}

void check_moves() {
  MemoryPool pool(0);
  PlanMemory memory(pool, 0);
  const int alive = cuda_on_host::alive;
  PlanMemory::Block one = memory.allocate(10, nullptr), other = memory.allocate(20, nullptr);
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
    PlanMemory memory(pool, 0);
    const PlanMemory::Block block = memory.allocate(64, nullptr);
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

// Memory that is given back while work in a stream uses it: it is freed when that work has ended, and nobody waits.
enum class How { kOwn, kForeign, kDefault, kClosed, kLost, kOther };

void check_release(How how) {
  MemoryPool pool(0);
  PlanMemory memory(pool, 0);
  sparsek::cuda::StreamUses uses;
  const bool own = how == How::kOwn || how == How::kClosed;
  cudaStream_t stream = how == How::kDefault ? nullptr : cuda_on_host::make_stream(cudaStreamNonBlocking);
  if (own) memory.releases().opened(stream);
  PlanMemory::Block block = memory.allocate(64, &uses);
  REQUIRE(!memory.releases().use(uses, stream));
  REQUIRE(!memory.releases().use(uses, stream));
  const auto work = cuda_on_host::begin_work(stream);
  if (how == How::kClosed) memory.releases().closing(stream);
  if (how == How::kClosed || how == How::kLost) cudaStreamDestroy(stream);
  if (how == How::kOther) {  // of another matrix: the handle says nothing, the number does
    const cudaStream_t other = cuda_on_host::make_stream(cudaStreamNonBlocking);
    memory.releases().seen(other);
    cudaStreamDestroy(other);
  }
  const int waits = cuda_on_host::waits, alive = cuda_on_host::alive;
  block = PlanMemory::Block();
  REQUIRE(cuda_on_host::alive == alive);  // in use
  if (how == How::kForeign || how == How::kOther) memory.releases().seen(stream);
  REQUIRE(cuda_on_host::alive == alive);
  cuda_on_host::finish(work);
  REQUIRE(cuda_on_host::waits == waits);
  REQUIRE(cuda_on_host::alive == alive - (how != How::kLost));
  if (how == How::kLost) {  // nobody can name the stream: freed when somebody needs the memory
    memory.releases().settle();
    REQUIRE(cuda_on_host::alive == alive - 1);
  }
  if (own && how != How::kClosed) memory.releases().closing(stream);
  if (how != How::kDefault && how != How::kClosed && how != How::kLost) cudaStreamDestroy(stream);
}

// Of a graph nobody knows where it runs: the device is waited for, also where there is no memory left.
void check_captured(bool no_memory) {
  MemoryPool pool(0);
  PlanMemory memory(pool, 0);
  sparsek::cuda::StreamUses uses;
  const cudaStream_t stream = cuda_on_host::make_stream(cudaStreamNonBlocking);
  PlanMemory::Block block = memory.allocate(64, &uses);
  stream->captured = true;
  REQUIRE(memory.releases().use(uses, stream));
  stream->captured = false;
  for (int turn = 0; turn < 2; ++turn) {
    cuda_on_host::begin_work(stream);
    cuda_on_host::no_memory = no_memory;
    const int waits = cuda_on_host::waits, alive = cuda_on_host::alive;
    block = PlanMemory::Block();
    cuda_on_host::no_memory = false;
    // The second time there is nothing left whose end could be waited for: the memory is lost rather than another's.
    const bool lost = no_memory && turn == 1;
    REQUIRE(cuda_on_host::waits == waits + !lost);
    REQUIRE(cuda_on_host::alive == (lost ? alive : no_memory ? alive - 2 : alive - 1));
    if (lost) --cuda_on_host::alive;
    block = memory.allocate(64, &uses);
  }
  block = PlanMemory::Block();
  cudaStreamDestroy(stream);
}

// Memory is not kept without end for streams that are not named again.
void check_kept() {
  MemoryPool pool(0);
  PlanMemory memory(pool, 0);
  const cudaStream_t stream = cuda_on_host::make_stream(cudaStreamNonBlocking);
  const int alive = cuda_on_host::alive;
  for (const size_t bytes : {size_t{64}, size_t{1} << 20}) {
    for (int i = 0; i < 1000; ++i) {
      sparsek::cuda::StreamUses uses;
      const PlanMemory::Block block = memory.allocate(bytes, &uses);
      memory.releases().use(uses, stream);
      REQUIRE(cuda_on_host::alive - alive <= (bytes == 64 ? 260 : 70));
    }
    memory.releases().settle();
  }
  cudaStreamDestroy(stream);
}

// A library's stream that has the handle of one which is gone is another.
void check_handles() {
  MemoryPool pool(0);
  PlanMemory memory(pool, 0);
  sparsek::cuda::StreamUses uses;
  const cudaStream_t stream = cuda_on_host::make_stream(cudaStreamNonBlocking);
  memory.releases().opened(stream);
  PlanMemory::Block block = memory.allocate(64, &uses);
  memory.releases().use(uses, stream);
  memory.releases().closing(stream);
  stream->id = ++cuda_on_host::last_id;
  memory.releases().opened(stream);
  memory.releases().use(uses, stream);
  const auto work = cuda_on_host::begin_work(stream);
  const int alive = cuda_on_host::alive;
  block = PlanMemory::Block();
  REQUIRE(cuda_on_host::alive == alive);
  cuda_on_host::finish(work);
  REQUIRE(cuda_on_host::alive == alive - 1);
  memory.releases().closing(stream);
  cudaStreamDestroy(stream);
}

// Memory of the application's allocator: what is given is what comes back, also behind a stream that it was used in.
struct Heap {
  size_t given = 0, back = 0;  // bytes
  void* last = nullptr;
  cudaStream_t stream = nullptr;  // of the last call
};

void check_allocator() {
  alignas(256) static std::byte bytes[1024];
  Heap heap;
  sparsek::DeviceAllocator allocator;
  allocator.user = &heap;
  allocator.allocate = [](void* user, size_t count, int32_t device, sparsek_stream stream) -> void* {
    auto& to = *static_cast<Heap*>(user);
    if (device != 3 || count > sizeof(bytes)) return nullptr;
    to.given += count;
    to.stream = static_cast<cudaStream_t>(stream);
    return to.last = bytes + (count == 65 ? 1 : 0);
  };
  allocator.release = [](void* user, void* memory, size_t count, int32_t device, sparsek_stream stream) {
    auto& to = *static_cast<Heap*>(user);
    REQUIRE(memory == to.last && device == 3);
    to.back += count;
    to.stream = static_cast<cudaStream_t>(stream);
  };
  const auto fails = [](MemoryPool& pool, size_t count, sparsek_status status) {
    try {
      pool.allocate(count, nullptr);
    } catch (const sparsek::Error& error) {
      return error.status() == status;
    }
    return false;
  };
  MemoryPool pool(3, allocator);
  const cudaStream_t stream = cuda_on_host::make_stream(cudaStreamNonBlocking);
  void* const memory = pool.allocate(64, stream);
  REQUIRE(memory == bytes && heap.given == 64 && heap.stream == stream);
  pool.keep(1 << 20);
  pool.release(memory, 64, nullptr);
  REQUIRE(heap.back == 64 && heap.stream == nullptr);
  REQUIRE(fails(pool, sizeof(bytes) + 1, SPARSEK_OUT_OF_MEMORY));
  REQUIRE(fails(pool, 65, SPARSEK_MISALIGNED));
  REQUIRE(heap.back == heap.given);
  cudaStreamDestroy(stream);
}

}  // namespace

int main() {
  for (const How how : {How::kOwn, How::kForeign, How::kDefault, How::kClosed, How::kLost, How::kOther}) {
    check_release(how);
  }
  check_captured(false);
  check_captured(true);
  check_kept();
  check_handles();
  check_writes();
  check_moves();
  check_allocator();
  REQUIRE(cuda_on_host::alive == 0);
  // Nine calls of the constructors, the allocation, which is tried again, and two for each copy.
  for (int call = 0; call < 14; ++call) REQUIRE(failed_at(call) == (call != 9));
  REQUIRE(!failed_at(14));
}

// SPDX-License-Identifier: Apache-2.0
// Reads and writes structs of the ABI within the size that the caller compiled them with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/error.h"
#include "sparsek.h"

namespace sparsek {

// The size of each struct in the first version of the ABI: the minimum that a caller can have. Members are added at the
// end, so these numbers never change.
template <class T>
struct AbiStruct;

#define SPARSEK_ABI_STRUCT(type, first)                                                  \
  template <>                                                                            \
  struct AbiStruct<type> {                                                               \
    static constexpr const char* kName = #type;                                          \
    static constexpr size_t kFirstSize = first;                                          \
    static_assert(sizeof(type) >= first, "a member of " #type " was removed or shrunk"); \
  }

SPARSEK_ABI_STRUCT(sparsek_build_info, 48);
SPARSEK_ABI_STRUCT(sparsek_kernel_info, 64);
SPARSEK_ABI_STRUCT(sparsek_device_info, 304);
SPARSEK_ABI_STRUCT(sparsek_context_options, 24);
SPARSEK_ABI_STRUCT(sparsek_context_info, 40);
SPARSEK_ABI_STRUCT(sparsek_bsr, 88);
SPARSEK_ABI_STRUCT(sparsek_plan_options, 48);
SPARSEK_ABI_STRUCT(sparsek_plan_info, 72);
SPARSEK_ABI_STRUCT(sparsek_multiply_args, 56);
SPARSEK_ABI_STRUCT(sparsek_check_args, 88);
SPARSEK_ABI_STRUCT(sparsek_check_report, 104);
SPARSEK_ABI_STRUCT(sparsek_dense_time_args, 80);
SPARSEK_ABI_STRUCT(sparsek_tuner_options, 24);
SPARSEK_ABI_STRUCT(sparsek_candidate_info, 72);
SPARSEK_ABI_STRUCT(sparsek_tuning_cache_info, 48);
SPARSEK_ABI_STRUCT(sparsek_tuning_entry, 128);
SPARSEK_ABI_STRUCT(sparsek_tuning_candidate, 40);
SPARSEK_ABI_STRUCT(sparsek_tuning_change, 1040);
SPARSEK_ABI_STRUCT(sparsek_plan_layout, 416);
SPARSEK_ABI_STRUCT(sparsek_pattern_args, 192);
SPARSEK_ABI_STRUCT(sparsek_values_args, 88);
SPARSEK_ABI_STRUCT(sparsek_attention_options, 144);
SPARSEK_ABI_STRUCT(sparsek_attention_info, 80);
SPARSEK_ABI_STRUCT(sparsek_attention_args, 312);
SPARSEK_ABI_STRUCT(sparsek_attention_check_args, 48);
SPARSEK_ABI_STRUCT(sparsek_pool_args, 104);

#undef SPARSEK_ABI_STRUCT

// No version of a struct will be larger: a larger value means that abi_size was never set.
constexpr size_t kLargestAbiSize = 4096;

// The caller's size of *data, checked. Throws SPARSEK_NULL_POINTER or SPARSEK_BAD_ABI_SIZE; `what` names it.
template <class T>
size_t checked_abi_size(const T* data, const char* what) {
  if (data == nullptr) fail(SPARSEK_NULL_POINTER, "%s is null", what);
  if (data->abi_size < AbiStruct<T>::kFirstSize || data->abi_size > kLargestAbiSize) {
    fail(SPARSEK_BAD_ABI_SIZE, "%s->abi_size is %zu, which no version of %s has: set it to sizeof(%s)", what,
         data->abi_size, AbiStruct<T>::kName, AbiStruct<T>::kName);
  }
  return data->abi_size < sizeof(T) ? data->abi_size : sizeof(T);
}

// Members of a newer version than this library's mean something that it would leave out unless they are 0. Throws
// SPARSEK_BAD_ABI_SIZE.
template <class T>
void require_known(const T* in, const char* what) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(in);
  for (size_t at = sizeof(T); at < in->abi_size; ++at) {
    if (bytes[at] == 0) continue;
    fail(SPARSEK_BAD_ABI_SIZE,
         "%s has a member at byte %zu that is not 0 and that this library does not know: its %s ends at byte %zu; use "
         "a newer library, or set the member to 0",
         what, at, AbiStruct<T>::kName, sizeof(T));
  }
}

// Members that are there for versions to come. Throws SPARSEK_BAD_ARGUMENT where one is not 0.
inline void require_zero(int32_t value, const char* what, const char* member) {
  if (value != 0) fail(SPARSEK_BAD_ARGUMENT, "%s->%s = %d: it has no meaning yet, set it to 0", what, member, value);
}
template <class T>
void require_reserved(const T&, const char*) {}
inline void require_reserved(const sparsek_plan_options& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
  require_zero(given.reserved2, what, "reserved2");
  require_zero(given.reserved3, what, "reserved3");
  require_zero(given.reserved5, what, "reserved5");
  require_zero(given.reserved4, what, "reserved4");
}
inline void require_reserved(const sparsek_bsr& given, const char* what) {
  // It was `validate_device` once, with the same values.
  if (given.reserved != 1) require_zero(given.reserved, what, "reserved");
  require_zero(given.reserved2, what, "reserved2");
}
inline void require_reserved(const sparsek_multiply_args& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
}
inline void require_reserved(const sparsek_tuner_options& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
}
inline void require_reserved(const sparsek_check_args& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
  require_zero(given.reserved2, what, "reserved2");
  require_zero(given.reserved3, what, "reserved3");
}

inline void require_reserved(const sparsek_values_args& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
}
inline void require_reserved(const sparsek_attention_options& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
  require_zero(given.reserved2, what, "reserved2");
}
inline void require_reserved(const sparsek_attention_args& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
}
inline void require_reserved(const sparsek_plan_layout& given, const char* what) {
  require_zero(given.reserved, what, "reserved");
}

// A copy of what the caller gave; members that the caller does not have yet are zero. Throws where the caller asks for
// what this version does not know.
template <class T>
T read_struct(const T* in, const char* what) {
  const size_t size = checked_abi_size(in, what);
  require_known(in, what);
  T copy{};
  std::memcpy(&copy, in, size);
  copy.abi_size = sizeof(T);
  require_reserved(copy, what);
  return copy;
}

// Writes the members that the caller's version has, and keeps the caller's abi_size. Throws like checked_abi_size.
template <class T>
void write_struct(T* out, const T& value, const char* what) {
  const size_t size = checked_abi_size(out, what);
  const size_t head = sizeof(value.abi_size);
  std::memcpy(reinterpret_cast<char*>(out) + head, reinterpret_cast<const char*>(&value) + head, size - head);
}

}  // namespace sparsek

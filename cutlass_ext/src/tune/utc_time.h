// SPDX-License-Identifier: Apache-2.0
// Dates in UTC, as seconds since 1970-01-01 00:00.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sparsek::tune {

// The last second of the year 9999: later times do not fit the format.
inline constexpr int64_t kLastTime = 253402300799;

int64_t now();

// "2026-11-21T18:30:00Z". The time is in [0, kLastTime].
std::string format_time(int64_t time);
// Parses the output of format_time; false for any other text.
bool parse_time(std::string_view text, int64_t& time);

}  // namespace sparsek::tune

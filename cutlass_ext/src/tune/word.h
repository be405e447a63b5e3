// SPDX-License-Identifier: Apache-2.0
// Words of a tuning file: what stands between two blanks of a line. Numbers do not depend on the locale.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

namespace sparsek::tune {

// Any bytes as one word: what could be taken for a part of the line is written %XX, its value in hexadecimal.
std::string escape(std::string_view bytes);
// The other way round; false where it is no such word.
bool unescape(std::string_view word, std::string& bytes);

// A double is written with as few digits as read back bit for bit.
template <class Number>
std::string number_word(Number value) {
  static_assert(std::is_arithmetic_v<Number>, "a number");
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

// False where the word is anything but a number of that type.
template <class Number>
bool parse_number(std::string_view word, Number& value) {
  const char* const end = word.data() + word.size();
  const std::from_chars_result result = std::from_chars(word.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

// The text up to the separator, or all of it, which is taken off the front of `rest` with the separator.
std::string_view take_until(std::string_view& rest, std::string_view separator);

}  // namespace sparsek::tune

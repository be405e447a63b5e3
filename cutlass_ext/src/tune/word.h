// SPDX-License-Identifier: Apache-2.0
// Words of a tuning file, separated by blanks. Numbers do not depend on the locale.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

namespace sparsek::tune {

// Writes any bytes as one word: bytes with a meaning in the line become %XX, their value in hexadecimal.
std::string escape(std::string_view bytes);
// The inverse of escape; false where the word is malformed.
bool unescape(std::string_view word, std::string& bytes);

// A double is written with the fewest digits that read back bit for bit.
template <class Number>
std::string number_word(Number value) {
  static_assert(std::is_arithmetic_v<Number>, "a number");
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

// False where the word is not a number of that type.
template <class Number>
bool parse_number(std::string_view word, Number& value) {
  const char* const end = word.data() + word.size();
  const std::from_chars_result result = std::from_chars(word.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

// Removes the text up to the separator, or all of it, and the separator from the front of `rest`, and returns the text.
std::string_view take_until(std::string_view& rest, std::string_view separator);

}  // namespace sparsek::tune

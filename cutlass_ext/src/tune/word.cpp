// SPDX-License-Identifier: Apache-2.0
#include "tune/word.h"

namespace sparsek::tune {
namespace {

constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.,:;+/()[]@";
constexpr std::string_view kHex = "0123456789ABCDEF";

}  // namespace

std::string escape(std::string_view bytes) {
  std::string word;
  for (const char c : bytes) {
    if (kPlain.find(c) != std::string_view::npos) {
      word += c;
      continue;
    }
    const auto value = static_cast<unsigned char>(c);
    word += '%';
    word += kHex[value >> 4];
    word += kHex[value & 15];
  }
  return word;
}

bool unescape(std::string_view word, std::string& bytes) {
  bytes.clear();
  for (size_t i = 0; i < word.size(); ++i) {
    if (kPlain.find(word[i]) != std::string_view::npos) {
      bytes += word[i];
      continue;
    }
    if (word[i] != '%' || word.size() - i < 3) return false;
    const size_t high = kHex.find(word[i + 1]), low = kHex.find(word[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return true;
}

std::string_view take_until(std::string_view& rest, std::string_view separator) {
  const size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + separator.size());
  return taken;
}

}  // namespace sparsek::tune

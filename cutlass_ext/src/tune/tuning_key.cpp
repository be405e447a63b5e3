// SPDX-License-Identifier: Apache-2.0
#include "tune/tuning_key.h"

#include "sparsek.h"
#include "tune/word.h"

namespace sparsek::tune {
namespace {

// A value of an enumeration and its name in a file. A value without a name is written as its number.
struct Name {
  int32_t value;
  const char* name;
};

constexpr Name kDtypes[] = {
    {SPARSEK_BF16, "bf16"}, {SPARSEK_FP16, "fp16"}, {SPARSEK_FP32, "fp32"}, {SPARSEK_FP64, "fp64"}};
constexpr Name kBiases[] = {{SPARSEK_BIAS_NONE, "none"}, {SPARSEK_BIAS_ROW, "row"}, {SPARSEK_BIAS_COLUMN, "column"}};
constexpr Name kActivations[] = {{SPARSEK_ACTIVATION_NONE, "none"},
                                 {SPARSEK_ACTIVATION_RELU, "relu"},
                                 {SPARSEK_ACTIVATION_GELU, "gelu"},
                                 {SPARSEK_ACTIVATION_SILU, "silu"}};

constexpr Name kKeptValues[] = {{1, "kept"}};

// The fields, in the order of the file.
template <class Key, class Visit>
void for_each_field(Key& key, Visit&& visit) {
  visit.text("device", key.device);
  visit.number("sm_count", key.sm_count);
  visit.text("build", key.build);
  visit.text("op", key.op);
  visit.number("m", key.m);
  visit.number("n", key.n);
  visit.number("k", key.k);
  visit.number("bm", key.bm);
  visit.number("bk", key.bk);
  visit.named("dtype", key.dtype, kDtypes);
  visit.optional("dtype_b", key.dtype_b, kDtypes);
  visit.named("dtype_c", key.dtype_c, kDtypes);
  visit.named("bias", key.bias, kBiases);
  visit.named("activation", key.activation, kActivations);
  visit.number("density_class", key.density_class);
  visit.number("spread_class", key.spread_class);
  visit.number("union_class", key.union_class);
  visit.optional("values", key.kept_values, kKeptValues);
}

struct Writer {
  std::string out;

  void word(const char* name, const std::string& value) {
    if (!out.empty()) out += ' ';
    out += name;
    out += '=';
    out += value;
  }
  void text(const char* name, const std::string& value) { word(name, escape(value)); }
  template <class Number>
  void number(const char* name, Number value) {
    word(name, number_word(value));
  }
  template <size_t kCount>
  void named(const char* name, int32_t value, const Name (&names)[kCount]) {
    for (const Name& known : names) {
      if (known.value == value) return word(name, known.name);
    }
    number(name, value);
  }
  template <size_t kCount>
  void optional(const char* name, int32_t value, const Name (&names)[kCount]) {
    if (value != 0) named(name, value, names);
  }
};

struct Reader {
  std::string_view rest;
  bool good = true;

  std::string_view word(const char* name) {
    std::string_view value = take_until(rest, " ");
    good = good && take_until(value, "=") == name;
    return value;
  }
  void text(const char* name, std::string& value) { good = unescape(word(name), value) && good; }
  template <class Number>
  void number(const char* name, Number& value) {
    good = parse_number(word(name), value) && good;
  }
  template <size_t kCount>
  void named(const char* name, int32_t& value, const Name (&names)[kCount]) {
    const std::string_view given = word(name);
    for (const Name& known : names) {
      if (given == known.name) {
        value = known.value;
        return;
      }
    }
    good = parse_number(given, value) && good;
  }
  template <size_t kCount>
  void optional(const char* name, int32_t& value, const Name (&names)[kCount]) {
    value = 0;
    if (rest.substr(0, rest.find('=')) == name) named(name, value, names);
  }
};

}  // namespace

std::string key_text(const TuningKey& key) {
  Writer writer;
  for_each_field(key, writer);
  return writer.out;
}

bool parse_key(std::string_view text, TuningKey& key) {
  Reader reader{text};
  for_each_field(key, reader);
  // Written again it must be the same, so that each key has exactly one text.
  return reader.good && key_text(key) == text;
}

std::string key_id(const TuningKey& key) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : key_text(key)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string id;
  for (int shift = 60; shift >= 0; shift -= 4) id += static_cast<char>('k' + (hash >> shift & 15));
  return id;
}

}  // namespace sparsek::tune

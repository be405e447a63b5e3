// SPDX-License-Identifier: Apache-2.0
// Keys, records, the text of tuning files and what they become when they are cut or changed. Prints the first fault
// and exits with 1.
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tune/build_id.h"
#include "tune/shipped_table.h"
#include "tune/tuning_memory.h"
#include "tune/tuning_text.h"
#include "tune/utc_time.h"
#include "tuning_sample.h"

namespace sparsek::tune {

// The build's table is not needed here.
extern const ShippedFile kShippedFiles[] = {{"whole.txt", "sparsek tuning cache, version 1\n# measured somewhere\n"},
                                            {"faulty.txt", "sparsek tuning cache\n"}};
extern const int kShippedFileCount = 2;

namespace {

void require(bool good, const char* what, const std::string& seen = "") {
  if (good) return;
  std::printf("%s%s%s\n", what, seen.empty() ? "" : ": ", seen.c_str());
  std::exit(1);
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool same(const TuningRecord& a, const TuningRecord& b) {
  bool good =
      key_text(a.key) == key_text(b.key) && a.measured == b.measured && a.candidates.size() == b.candidates.size();
  for (size_t i = 0; good && i < a.candidates.size(); ++i) {
    const TuningCandidate &x = a.candidates[i], &y = b.candidates[i];
    good = x.kernel == y.kernel && same_bits(x.seconds, y.seconds) && same_bits(x.spread, y.spread) &&
           same_bits(x.setup_seconds, y.setup_seconds);
  }
  return good;
}

bool has(const TuningRecords& records, const TuningRecord& record) {
  const TuningRecord* const found = records.find(record.key);
  return found != nullptr && same(*found, record);
}

void check_round_trips() {
  Dice dice(1);
  for (int i = 0; i < 20000; ++i) {
    const TuningRecord record = dice.record();
    const std::string line = record_line(record);
    TuningRecord read;
    require(line.find('\n') == std::string::npos, "a record is more than one line", line);
    require(parse_record(line, read) && same(record, read), "a record is not read as it was written", line);
    require(read.key.device == record.key.device && read.key.m == record.key.m && read.key.dtype == record.key.dtype,
            "a key is not read as it was written", line);
  }
}

// A key has a text of its own, whichever field differs.
void check_fields() {
  std::set<std::string> texts, ids;
  const TuningKey plain = sample_record(1).key;
  const auto add = [&](const TuningKey& key) {
    texts.insert(key_text(key));
    ids.insert(key_id(key));
  };
  add(plain);
  for (std::string TuningKey::* field : {&TuningKey::device, &TuningKey::build, &TuningKey::op}) {
    TuningKey key = plain;
    key.*field += ' ';
    add(key);
  }
  for (int64_t TuningKey::* field : {&TuningKey::m, &TuningKey::n, &TuningKey::k, &TuningKey::bm, &TuningKey::bk}) {
    TuningKey key = plain;
    key.*field += 1000;
    add(key);
  }
  for (int32_t TuningKey::* field :
       {&TuningKey::sm_count, &TuningKey::dtype, &TuningKey::dtype_c, &TuningKey::bias, &TuningKey::activation,
        &TuningKey::density_class, &TuningKey::spread_class, &TuningKey::union_class, &TuningKey::kept_values}) {
    TuningKey key = plain;
    key.*field += 1;
    add(key);
  }
  require(texts.size() == 18 && ids.size() == 18, "a field makes no difference", std::to_string(texts.size()));
  for (const std::string& id : ids) {
    require(id.size() == 16 && id.find_first_not_of("klmnopqrstuvwxyz") == std::string::npos, "no id", id);
  }
  require(key_text(plain) ==
              "device=GPU%20of%20100%20%25%20%7C%20%22made%20up%22%0A sm_count=132 build=0123456789abcdef op=dsd m=1 "
              "n=4096 k=4096 bm=64 bk=64 dtype=bf16 dtype_c=bf16 bias=none activation=none density_class=0 "
              "spread_class=0 union_class=0",
          "the text of a key is another than files have", key_text(plain));
}

void check_bad_lines() {
  const std::string good = record_line(sample_record(1));
  TuningRecord record;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    const size_t at = line.find(from);
    require(at != std::string::npos, "nothing to change", from);
    return line.replace(at, from.size(), to);
  };
  require(parse_record(good, record), "a good line is refused", good);
  for (const std::string& line : {std::string(),
                                  good + " 1",
                                  " " + good,
                                  good + " | ",
                                  good + " | third",
                                  good + " | third 1 2",
                                  changed("m=1", "m="),
                                  good + " | third 1 2 3 4",
                                  good + " | third 1 2 x",
                                  good + " |  1 2 3",
                                  good.substr(0, good.find(" | ")),
                                  changed("sm_count=132", "sm_count=0132"),
                                  changed("op=dsd", "op=dsd new=1"),
                                  changed(" op=dsd", ""),
                                  changed("bf16", "fp8"),
                                  changed("bf16", "1"),
                                  changed("m=1", "m=1 m=1"),
                                  changed("m=1", "m=9223372036854775808"),
                                  changed("%20", "%2"),
                                  changed("%20", "%zz"),
                                  changed("%20", " "),
                                  changed(" 0.1 ", " nan "),
                                  changed(" 0.1 ", " -0.1 "),
                                  changed(" 0.1 ", " inf "),
                                  changed(" 0.1 ", " 1e999 "),
                                  changed("Z |", " |"),
                                  changed("date=2023-11", "date=2023-13"),
                                  changed("date=2023-11-14", "date=2023-02-31"),
                                  changed("date=2023", "date=1969"),
                                  changed("date=2023", "date=10000"),
                                  changed("date=", "when=")}) {
    require(line == good + " | " || !parse_record(line, record), "a bad line is taken", line);
  }
}

TuningRecords sample_records(int64_t count) {
  TuningRecords records;
  for (int64_t i = 0; i < count; ++i) records.put(sample_record(i));
  return records;
}

// A file that ends anywhere: each whole line is kept, and it is known to be cut unless it ends with one.
void check_cut() {
  const int64_t count = 5;
  const std::string text = tuning_text(sample_records(count));
  const size_t header = text.find('\n') + 1;
  for (size_t size = 0; size <= text.size(); ++size) {
    const TuningContent content = parse_tuning_text(std::string_view(text).substr(0, size));
    const bool ends_line = size == 0 || text[size - 1] == '\n';
    TuningState want = ends_line ? TuningState::kWhole : TuningState::kDamaged;
    if (size > 0 && size + 1 < header) want = TuningState::kForeign;
    require(content.state == want && content.fault.empty() == (want == TuningState::kWhole),
            "a cut file is not known as what it is", std::to_string(size) + " bytes, " + content.fault);
    int64_t lines = 0;
    for (size_t i = header; i < size; ++i) lines += text[i] == '\n';
    require(static_cast<int64_t>(content.records.size()) == lines, "a cut file has lost a line", std::to_string(size));
    for (int64_t i = 0; i < lines; ++i) require(has(content.records, sample_record(i)), "a record has changed");
  }
}

// A byte that is another: the other lines are kept.
void check_damage() {
  const int64_t count = 4;
  const std::string text = tuning_text(sample_records(count));
  for (size_t at = text.find('\n') + 1; at < text.size(); ++at) {
    for (const char c : {'\n', ' ', '#', '=', '|', '7', '\0', '\xff'}) {
      std::string damaged = text;
      damaged[at] = c;
      const TuningContent content = parse_tuning_text(damaged);
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) kept += has(content.records, sample_record(i));
      // Without its end a line and the next are one.
      require(kept >= count - (text[at] == '\n' ? 2 : 1), "a good line is lost", damaged);
    }
  }
}

void check_versions() {
  const std::string rest = tuning_text(sample_records(2)).substr(31);
  for (const char* const version : {"0", "2", "10", "-1"}) {
    const TuningContent content = parse_tuning_text("sparsek tuning cache, version " + std::string(version) + rest);
    require(content.state == TuningState::kForeign && content.records.size() == 0, "a version is taken", version);
    require(content.fault.find("of version " + std::string(version)) != std::string::npos, "fault", content.fault);
  }
  require(parse_tuning_text("sparsek tuning cache, version 2\n").fault.find("newer") != std::string::npos, "newer");
  require(parse_tuning_text("sparsek tuning cache, version 0\n").fault.find("older") != std::string::npos, "older");
  for (const char* const first : {"version", "sparsek tuning cache, version 1 ", "sparsek tuning cache, version 1\r",
                                  "sparsek tuning cache, version x", "\n", "sparsek tuning cache, version "}) {
    const TuningContent content = parse_tuning_text(first + rest);
    require(content.state == TuningState::kForeign && content.fault.find("its first line") == 0, "foreign", first);
  }
  const TuningContent noted = parse_tuning_text("sparsek tuning cache, version 1\n# a note\n" + rest.substr(1));
  require(noted.state == TuningState::kWhole && noted.records.size() == 2, "a note is a fault", noted.fault);
}

void check_records() {
  TuningRecords records;
  TuningRecord record = sample_record(1), newer = record, older = record;
  newer.measured += 1;
  newer.candidates.pop_back();
  older.measured -= 1;
  require(records.merge(record) && !records.merge(record) && !records.merge(older), "an older record wins");
  require(records.merge(newer) && has(records, newer) && !records.merge(record), "a newer record is not taken");
  records.put(older);
  require(has(records, older), "what is put is not there");
  records.erase(newer);
  require(has(records, older), "another record was erased");
  records.erase(older);
  require(records.size() == 0, "nothing was erased");

  TuningRecord shipped = sample_record(2);
  shipped.key.build = kShippedBuild;
  records.put(shipped);
  require(records.find(sample_record(2).key) != nullptr, "what was shipped is not for this build");
  records.put(sample_record(2));
  require(has(records, sample_record(2)), "what was shipped comes before what was measured");

  const auto most = static_cast<int64_t>(TuningRecords::kMost);
  records = sample_records(most + 3);
  records.drop_oldest();
  require(records.size() == TuningRecords::kMost && records.find(sample_record(2).key) == nullptr &&
              has(records, sample_record(3)) && has(records, sample_record(most + 2)),
          "others than the oldest were dropped");
  require(parse_tuning_text(tuning_text(records)).records.size() == TuningRecords::kMost, "a full file is not read");
}

void check_memory() {
  TuningRecords table;
  TuningRecord shipped = sample_record(1);
  shipped.key.build = kShippedBuild;
  table.put(shipped);
  TuningMemory memory(table, "");
  require(memory.lookup(sample_record(1).key).source == TuningSource::kTable, "the table is not asked");
  require(memory.lookup(sample_record(2).key).source == TuningSource::kNone, "an answer from nowhere");
  require(memory.remember(sample_record(1)).empty(), "without a file there is a warning");
  const TuningAnswer answer = memory.lookup(sample_record(1).key);
  require(answer.source == TuningSource::kCache && same(answer.record, sample_record(1)), "the table comes first");

  TuningRecord bad = sample_record(3);
  bad.candidates[1].seconds = -1;
  require(memory.remember(bad).find("second is negative") != std::string::npos, "a bad record has no warning");
  require(memory.lookup(bad.key).source == TuningSource::kNone, "a bad record is kept");
  bad.candidates.clear();
  require(!record_fault(bad).empty(), "a record of nothing is kept");
}

void check_shipped() {
  require(
      shipped_table().state == TuningState::kDamaged && shipped_table().fault.find("faulty.txt: its first line") == 0,
      "a fault in a shipped file is not told", shipped_table().fault);
}

}  // namespace
}  // namespace sparsek::tune

int main(int, char** arguments) {
  using namespace sparsek::tune;
  check_round_trips();
  check_fields();
  check_bad_lines();
  check_cut();
  check_damage();
  check_versions();
  check_records();
  check_memory();
  check_shipped();
  require(library_build() == arguments[1], "the build is not the linker's", library_build());
}

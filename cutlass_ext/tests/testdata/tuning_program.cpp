// SPDX-License-Identifier: Apache-2.0
// A process that remembers, for tests of what happens to it and beside it. Numbers are those of sample_record.
//   remember PATH FIRST COUNT [CALL ERRNO]   keeps COUNT records, one after the other, and says so; system call number
//                                            CALL fails with ERRNO or, where that is 0, kills (tuning_trap.h)
//   threads PATH COUNT                       keeps COUNT records from each of four threads, while others look them up
//   watch PATH                               reads until stdin ends: nothing may be broken or go away
//   list PATH                                prints the state, the fault and the numbers in the file
//   lock PATH                                waits a moment for the lock of the file
//   clear PATH                               removes the file and says how many records that were
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "abi/error.h"
#include "tune/file_lock.h"
#include "tune/shipped_table.h"
#include "tune/tuning_memory.h"
#include "tuning_sample.h"
#include "tuning_trap.h"

namespace sparsek::tune {

extern const ShippedFile kShippedFiles[] = {{nullptr, nullptr}};
extern const int kShippedFileCount = 0;

namespace {

const TuningRecords kNoTable;

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

[[noreturn]] void stop(const std::string& what) {
  say(what);
  std::exit(1);
}

void require_known(TuningMemory& memory, int64_t number) {
  const TuningRecord want = sample_record(number);
  const TuningAnswer answer = memory.lookup(want.key);
  if (answer.source != TuningSource::kCache || record_line(answer.record) != record_line(want)) {
    stop("not remembered: " + std::to_string(number));
  }
}

void remember(const std::string& path, int64_t first, int64_t count, int call, int code) {
  TuningMemory memory(kNoTable, path);
  trap::set(call, code);
  for (int64_t number = first; number < first + count; ++number) {
    const std::string warning = memory.remember(sample_record(number));
    say(warning.empty() ? "kept " + std::to_string(number) : "warning: " + warning);
  }
  trap::set(0, 0);
  // Whatever went wrong, this process knows what it has measured.
  for (int64_t number = first; number < first + count; ++number) require_known(memory, number);
}

void threads(const std::string& path, int64_t count) {
  TuningMemory memory(kNoTable, path), other(kNoTable, path);
  std::vector<std::thread> workers;
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    while (!is_over) {
      other.lookup(sample_record(0).key);
      std::this_thread::yield();
    }
  });
  for (int64_t worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&, worker] {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t number = worker * count + i;
        const std::string warning = (i % 2 == 0 ? memory : other).remember(sample_record(number));
        if (!warning.empty()) stop(warning);
        require_known(memory, number);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  is_over = true;
  reader.join();
  for (int64_t number = 0; number < 4 * count; ++number) require_known(other, number);
}

bool is_input_over() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

void watch(const std::string& path) {
  size_t seen = 0, reads = 0;
  while (!is_input_over()) {
    const TuningContent content = read_tuning_file(path);
    if (!content.fault.empty()) stop(content.fault);
    if (content.records.size() < seen) stop("records went away");
    seen = content.records.size();
    ++reads;
  }
  say(std::to_string(reads) + " reads");
}

void list(const std::string& path) {
  constexpr const char* kStates[] = {"absent", "whole", "damaged", "foreign", "unreadable"};
  const TuningContent content = read_tuning_file(path);
  say(kStates[static_cast<int>(content.state)]);
  say(content.fault);
  for (const TuningRecord* const record : content.records.by_age()) {
    if (record_line(*record) != record_line(sample_record(record->key.m))) stop("a record has changed");
    say(std::to_string(record->key.m));
  }
}

void clear(const std::string& path) {
  try {
    int64_t records = 0;
    const std::string warning = remove_tuning_file(path, Target::kCache, records);
    say(std::to_string(records));
    say(warning);
  } catch (const Error& error) {
    stop(error.what());
  }
}

void lock(const std::string& path) {
  try {
    const FileLock held(path + ".lock", std::chrono::milliseconds(50));
    say("held");
  } catch (const Error& error) {
    say(error.what());
  }
}

}  // namespace
}  // namespace sparsek::tune

int main(int count, char** arguments) {
  using namespace sparsek::tune;
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const std::string task = words.at(0), path = words.at(1);
  const auto number = [&](size_t i) { return i < words.size() ? std::atoi(words[i].c_str()) : 0; };
  if (task == "remember") remember(path, number(2), number(3), number(4), number(5));
  if (task == "threads") threads(path, number(2));
  if (task == "watch") watch(path);
  if (task == "list") list(path);
  if (task == "lock") lock(path);
  if (task == "clear") clear(path);
}

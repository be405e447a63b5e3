// SPDX-License-Identifier: Apache-2.0
// Tuning caches for inspection by the caller. The library itself uses tune/tuning_memory.h.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/require.h"
#include "tune/build_id.h"
#include "tune/cache_path.h"
#include "tune/shipped_table.h"
#include "tune/tuning_file.h"

// The records that were read and their names, the newest first.
struct sparsek_tuning_cache {
  struct Entry {
    const sparsek::tune::TuningRecord* record;
    std::string id;
  };

  sparsek_tuning_cache(const std::string& of, sparsek::tune::TuningContent what) : path(of), content(std::move(what)) {
    for (const sparsek::tune::TuningRecord* const record : content.records.by_age()) {
      entries.push_back({record, key_id(record->key)});
    }
    std::reverse(entries.begin(), entries.end());
  }

  const std::string path;
  const sparsek::tune::TuningContent content;
  std::vector<Entry> entries;
};

namespace sparsek::entry {
namespace {

// The values of sparsek_tuning_state.
static_assert(static_cast<int>(tune::TuningState::kAbsent) == SPARSEK_TUNING_ABSENT);
static_assert(static_cast<int>(tune::TuningState::kWhole) == SPARSEK_TUNING_WHOLE);
static_assert(static_cast<int>(tune::TuningState::kDamaged) == SPARSEK_TUNING_DAMAGED);
static_assert(static_cast<int>(tune::TuningState::kForeign) == SPARSEK_TUNING_FOREIGN);
static_assert(static_cast<int>(tune::TuningState::kUnreadable) == SPARSEK_TUNING_UNREADABLE);

std::unique_ptr<sparsek_tuning_cache> open_user() {
  const tune::CachePath user = tune::user_cache_path();
  tune::TuningContent content;
  if (user.path.empty()) {
    content.fault = user.why_none;
  } else {
    content = tune::read_tuning_file(user.path);
  }
  return std::make_unique<sparsek_tuning_cache>(user.path, std::move(content));
}

void require_path(const char* path, const char* what) {
  if (path != nullptr && *path == '\0') fail(SPARSEK_BAD_ARGUMENT, "%s is empty: null is the user's cache", what);
}

// The file to write, and which kind of file it is.
struct Place {
  std::string path;
  tune::Target target;
};

Place place_of(const char* path) {
  if (path != nullptr) return {path, tune::Target::kFile};
  const tune::CachePath user = tune::user_cache_path();
  if (user.path.empty()) fail(SPARSEK_IO_ERROR, "there is no tuning cache: %s", user.why_none.c_str());
  return {user.path, tune::Target::kCache};
}

const sparsek_tuning_cache::Entry& entry_at(const sparsek_tuning_cache* cache, int64_t index) {
  require_not_null(cache, "cache");
  const auto count = static_cast<int64_t>(cache->entries.size());
  if (index < 0 || index >= count) {
    fail(SPARSEK_BAD_ARGUMENT, "index = %" PRId64 " is not in [0, %" PRId64 ")", index, count);
  }
  return cache->entries[static_cast<size_t>(index)];
}

void write_change(sparsek_tuning_change* out, int64_t entries, const std::string& warning) {
  sparsek_tuning_change change{};
  change.entries = entries;
  std::snprintf(change.warning, sizeof(change.warning), "%s", warning.c_str());
  write_struct(out, change, "out");
}

}  // namespace

sparsek_status tuning_cache_open(const char* path, int32_t source, sparsek_tuning_cache** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    if (source != SPARSEK_TUNING_FILE && source != SPARSEK_TUNING_SHIPPED) {
      fail(SPARSEK_BAD_ARGUMENT, "source = %d is neither SPARSEK_TUNING_FILE (0) nor SPARSEK_TUNING_SHIPPED (1)",
           source);
    }
    if (source == SPARSEK_TUNING_SHIPPED && path != nullptr) {
      fail(SPARSEK_BAD_ARGUMENT, "path = \"%s\": the shipped cache has no path, pass null", path);
    }
    require_path(path, "path");
    if (source == SPARSEK_TUNING_SHIPPED) {
      *out = std::make_unique<sparsek_tuning_cache>("", tune::shipped_table()).release();
    } else if (path == nullptr) {
      *out = open_user().release();
    } else {
      *out = std::make_unique<sparsek_tuning_cache>(path, tune::read_tuning_file(path)).release();
    }
  });
}

sparsek_status tuning_cache_info(const sparsek_tuning_cache* cache, sparsek_tuning_cache_info* out) noexcept {
  return guard([&] {
    require_not_null(cache, "cache");
    sparsek_tuning_cache_info info{};
    info.path = cache->path.c_str();
    info.fault = cache->content.fault.c_str();
    info.build = tune::library_build().c_str();
    info.entries = static_cast<int64_t>(cache->entries.size());
    info.state = static_cast<int32_t>(cache->content.state);
    write_struct(out, info, "out");
  });
}

sparsek_status tuning_cache_entry(const sparsek_tuning_cache* cache, int64_t index,
                                  sparsek_tuning_entry* out) noexcept {
  return guard([&] {
    checked_abi_size(out, "out");
    const sparsek_tuning_cache::Entry& found = entry_at(cache, index);
    const tune::TuningKey& key = found.record->key;
    sparsek_tuning_entry entry{};
    entry.id = found.id.c_str();
    entry.device = key.device.c_str();
    entry.build = key.build.c_str();
    entry.op = key.op.c_str();
    entry.m = key.m;
    entry.n = key.n;
    entry.k = key.k;
    entry.block_m = key.bm;
    entry.block_k = key.bk;
    entry.measured = found.record->measured;
    entry.sm_count = key.sm_count;
    entry.dtype = key.dtype;
    entry.dtype_b = key.dtype_b == 0 ? key.dtype : key.dtype_b;
    entry.dtype_c = key.dtype_c;
    entry.bias = key.bias;
    entry.activation = key.activation;
    entry.density_class = key.density_class;
    entry.spread_class = key.spread_class;
    entry.union_class = key.union_class;
    entry.kept_values = key.kept_values;
    entry.candidates = static_cast<int32_t>(found.record->candidates.size());
    write_struct(out, entry, "out");
  });
}

sparsek_status tuning_cache_candidate(const sparsek_tuning_cache* cache, int64_t index, int32_t candidate,
                                      sparsek_tuning_candidate* out) noexcept {
  return guard([&] {
    checked_abi_size(out, "out");
    const tune::TuningRecord& record = *entry_at(cache, index).record;
    const auto count = static_cast<int32_t>(record.candidates.size());
    if (candidate < 0 || candidate >= count) {
      fail(SPARSEK_BAD_ARGUMENT, "candidate = %d is not in [0, %d)", candidate, count);
    }
    const tune::TuningCandidate& measured = record.candidates[static_cast<size_t>(candidate)];
    sparsek_tuning_candidate known{};
    known.kernel = measured.kernel.c_str();
    known.seconds = measured.seconds;
    known.spread = measured.spread;
    known.setup_seconds = measured.setup_seconds;
    write_struct(out, known, "out");
  });
}

void tuning_cache_close(sparsek_tuning_cache* cache) noexcept { delete cache; }

sparsek_status tuning_cache_merge(const char* into, const sparsek_tuning_cache* from,
                                  sparsek_tuning_change* out) noexcept {
  return guard([&] {
    require_path(into, "into");
    require_not_null(from, "from");
    checked_abi_size(out, "out");
    const Place place = place_of(into);
    int64_t added = 0;
    const std::string warning = tune::update_tuning_file(place.path, place.target, [&](tune::TuningRecords& records) {
      for (const sparsek_tuning_cache::Entry& entry : from->entries) added += records.merge(*entry.record);
      return true;
    });
    write_change(out, added, warning);
  });
}

sparsek_status tuning_cache_clear(const char* path, sparsek_tuning_change* out) noexcept {
  return guard([&] {
    require_path(path, "path");
    checked_abi_size(out, "out");
    const Place place = place_of(path);
    int64_t removed = 0;
    const std::string warning = tune::remove_tuning_file(place.path, place.target, removed);
    write_change(out, removed, warning);
  });
}

}  // namespace sparsek::entry

// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

namespace sparsek::cpu {
namespace {

// 0 where the operating system does not report it.
int affinity_count() {
  constexpr int kMostCpus = 1 << 16;
  for (int cpus = CPU_SETSIZE; cpus <= kMostCpus; cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(cpus);
    if (set == nullptr) return 0;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !known && errno == EINVAL;  // the kernel's mask is larger
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (!too_small) return count;
  }
  return 0;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The cores of a quota of `quota` microseconds of CPU time in every `period`; 0: no quota ("max", -1 or no such file).
int quota_cores(const std::string& quota, const std::string& period) {
  double cpu_time = 0, wall_time = 0;
  std::istringstream(quota) >> cpu_time;
  std::istringstream(period) >> wall_time;
  if (!(cpu_time > 0) || !(wall_time > 0)) return 0;
  return static_cast<int>(std::min(std::ceil(cpu_time / wall_time), 1e6));
}

int quota_v2(const std::string& folder) {
  std::istringstream text(read_text(folder + "/cpu.max"));
  std::string quota, period;
  text >> quota >> period;
  return quota_cores(quota, period);
}

int quota_v1(const std::string& folder) {
  return quota_cores(read_text(folder + "/cpu.cfs_quota_us"), read_text(folder + "/cpu.cfs_period_us"));
}

// The smallest quota of the group `path` and its parents; a container may see its own group as the root.
int smallest_quota(const std::string& mount, std::string path, int (*read_quota)(const std::string&)) {
  int smallest = 0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const int quota = read_quota(mount + path);
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
    if (path.empty()) return smallest;
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

int cgroup_cpu_quota(const std::string& membership, const std::string& root) {
  int smallest = 0;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    int quota = 0;
    if (controllers.empty()) {
      quota = smallest_quota(root, path, quota_v2);
    } else if (lists_cpu(controllers)) {
      quota = smallest_quota(root + "/" + controllers, path, quota_v1);
    }
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}

int usable_cpu_count() {
  int count = affinity_count();
  if (count == 0) count = static_cast<int>(std::thread::hardware_concurrency());
  const int quota = cgroup_cpu_quota(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (quota > 0) count = std::min(count, quota);
  return std::max(count, 1);
}

}  // namespace sparsek::cpu

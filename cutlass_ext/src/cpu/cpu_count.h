// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sparsek::cpu {

// The number of cores that this process may use: those of its affinity mask, limited by the CPU quota of its control
// groups (rounded up). At least 1.
int usable_cpu_count();

// The CPU quota in whole cores, rounded up, or 0 where there is none: the smallest along the path from the process's
// control group to the root, in version 2 (cpu.max) and version 1 (cpu.cfs_quota_us). `membership` is the text of
// /proc/self/cgroup, `root` where control groups are mounted.
int cgroup_cpu_quota(const std::string& membership, const std::string& root);

}  // namespace sparsek::cpu

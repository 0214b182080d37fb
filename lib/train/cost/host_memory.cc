// SPDX-License-Identifier: Apache-2.0
#include "train/cost/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace vfm::train {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The value of a line "NAME VALUE", or "NAME: VALUE kB"; -1 if there is none.
double value_in(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (double value = 0; word == name && file >> value) return value;
  return -1;
}

/// Of this process's control group, which a container has; infinite without one. Version 2, and 1.
double group_limit() {
  double limit = kNoLimit;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    double bytes = 0;
    if (file >> bytes && bytes > 0) limit = std::min(limit, bytes);  // version 2 may say "max"
  }
  return limit;
}

/// What the processes of the group keep: their own memory, and files in memory.
double group_use() {
  double use = 0;
  for (const auto& [path, names] :
       {std::pair{"/sys/fs/cgroup/memory.stat", std::pair{"anon", "shmem"}},
        std::pair{"/sys/fs/cgroup/memory/memory.stat", std::pair{"total_rss", "total_shmem"}}})
    use += std::max(0.0, value_in(path, names.first)) + std::max(0.0, value_in(path, names.second));
  return use;
}

}  // namespace

HostMemory host_memory() {
  const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES)),
               page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  HostMemory memory{pages * page, 1024 * value_in("/proc/meminfo", "MemAvailable:")};
  if (const double limit = group_limit(); limit < memory.all) {
    memory.all = limit;
    memory.free = std::min(memory.free, limit - group_use());
  }
  return memory;
}

}  // namespace vfm::train

// What the library logs while a test runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace vfm {

/// Collects the log from its constructor on. Only one HeardLog exists at a time. Any thread may
/// log.
class HeardLog {
 public:
  explicit HeardLog(LogLevel level = LogLevel::warning) {
    clear();
    set_log_sink(
        [](LogLevel, std::string_view line) {
          const std::lock_guard lock(mutex_);
          lines_.emplace_back(line);
        },
        level);
  }
  ~HeardLog() { set_log_sink(nullptr, LogLevel::warning); }
  HeardLog(const HeardLog&) = delete;
  HeardLog& operator=(const HeardLog&) = delete;

  static void clear() {
    const std::lock_guard lock(mutex_);
    lines_.clear();
  }
  static std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  /// Returns the lines, each with a newline at its end.
  static std::string text() {
    std::string all;
    for (const std::string& line : lines())
      all.append(line) += '\n';
    return all;
  }
  /// Returns the number of lines for which `matches` is true.
  template <class Matches>
  static long count(const Matches& matches) {
    const std::vector<std::string> all = lines();
    return std::count_if(all.begin(), all.end(), matches);
  }
  /// Returns whether a line ends with `end`.
  static bool any(const std::string& end) {
    return count([&](const std::string& line) { return line.ends_with(end); }) > 0;
  }

 private:
  static inline std::mutex mutex_;  // guards lines_
  static inline std::vector<std::string> lines_;
};

}  // namespace vfm

// The progress of one clip, shown next to the number of clips: "'fox': step 12 of 36, 3m12s left".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/format.h"
#include "base/progress.h"
#include "base/units.h"

namespace vfm::generate {

/// The progress of one phase of a clip. Thread-safety: one thread; the Progress may be shared.
class ClipProgress {
 public:
  /// `unit` is the name of what is counted, such as "step".
  ClipProgress(Progress& progress, std::string name, const char* unit)
      : progress_(progress), name_(std::move(name)), unit_(unit) {}
  ~ClipProgress() { progress_.place(""); }
  ClipProgress(const ClipProgress&) = delete;
  ClipProgress& operator=(const ClipProgress&) = delete;

  /// `done` of `total` units are done. The time left is shown from the second call on, because
  /// units that an earlier run did took no time in this run.
  void at(std::int64_t done, std::int64_t total) {
    const auto now = std::chrono::steady_clock::now();
    std::string text = vfm::format("'{}': {} {} of {}", name_, unit_, done, total);
    if (first_ < 0) {
      first_ = done;
      begin_ = now;
    } else if (done > first_) {
      const double seconds = std::chrono::duration<double>(now - begin_).count();
      const double one = seconds / static_cast<double>(done - first_);
      text += vfm::format(", {} left", format_seconds(one * static_cast<double>(total - done)));
    }
    progress_.place(text);
  }

 private:
  Progress& progress_;
  std::string name_;
  const char* unit_;
  std::int64_t first_ = -1;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace vfm::generate

// Measures time and amount of work on a sample, to scale it for --dry-run (cli/estimate.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/progress.h"

namespace vfm::cli {

/// Thrown by add() when the time is over, to end the work.
struct Enough {};

/// Thread-safety: any thread, as Progress.
class SampleProgress : public Progress {
 public:
  /// After `most_seconds` from the first start(), add() throws Enough. With 0 it never throws.
  explicit SampleProgress(double most_seconds) : most_seconds_(most_seconds) {}

  /// Work may have several phases, each with a start(). The time of all phases is measured, but
  /// add() counts only in the first phase.
  void start(std::string_view unit, std::uint64_t total) override;
  void add(std::uint64_t done) override;
  void part(const void* item, double done) override;
  /// Says that the work has ended. The time from the last add() until now is included.
  void end();

  /// Returns the predicted seconds for `count` items, from the measured time for each item, and at
  /// least the time so far. Returns 0 if no item was done.
  double seconds_for(double count) const;
  /// Returns the predicted seconds for `count` videos, from the videos that called part(), with
  /// times scaled to whole lengths. Without such videos, returns seconds_for().
  double seconds_for_videos(double count) const;
  /// Returns the number of videos that reported their progress.
  std::size_t timed() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    Clock::time_point begin;
    double done;
  };

  const double most_seconds_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<Clock::time_point> begin_;
  int phases_ = 0;
  double done_ = 0, elapsed_ = 0;
  std::map<const void*, Open> open_;  // videos that are worked on
  Clock::time_point last_;
  double busy_ = 0;             // time with a video at work
  double sum_ = 0, whole_ = 0;  // seconds for the parts done; scaled to whole videos
  std::size_t timed_ = 0;
};

}  // namespace vfm::cli

// How long work on a sample took, and how much of it was done: what --dry-run scales.
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

/// What add() throws, so that work ends that has had its time.
struct Enough {};

/// Thread-safety: any thread, as Progress.
class SampleProgress : public Progress {
 public:
  /// `most_seconds` from the first start(): then add() throws Enough. 0: never.
  explicit SampleProgress(double most_seconds) : most_seconds_(most_seconds) {}

  /// Work may have several phases, each with a start(). The clock runs on; only what the first one
  /// adds is counted.
  void start(std::string_view unit, std::uint64_t total) override;
  void add(std::uint64_t done) override;
  void part(const void* item, double done) override;
  /// The work has come to its end, after what it does behind the last add().
  void end();

  /// Seconds that the work would take on so many, if they take as long each as those that were
  /// counted; at least what it took. 0: nothing was done.
  double seconds_for(double count) const;
  /// Seconds for so many videos: of each that told by part() how far it came, its time scaled to
  /// its whole length; the others are taken to be like these. If none told, as seconds_for().
  double seconds_for_videos(double count) const;
  /// How many videos told how far they came.
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
  double sum_ = 0, whole_ = 0;  // time of videos: of their parts; of all of them, scaled
  std::size_t timed_ = 0;
};

}  // namespace vfm::cli

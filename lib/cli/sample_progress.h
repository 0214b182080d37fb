// Measures the time and the amount of work on a sample, for --dry-run (cli/estimate.h).
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

/// The exception by which add() ends the work after the time limit.
struct Enough {};

/// A Progress that predicts the time of the whole work from a sample. Thread-safety: any thread.
class SampleProgress : public Progress {
 public:
  /// `most_seconds` is a time limit, or 0 for no limit. add() throws Enough when this time has
  /// passed since the first start().
  explicit SampleProgress(double most_seconds) : most_seconds_(most_seconds) {}

  /// Starts a phase of the work. The time of all phases is measured. add() counts items only in the
  /// first phase.
  void start(std::string_view unit, std::uint64_t total) override;
  void add(std::uint64_t done) override;
  void part(const void* item, double done) override;
  void end();

  /// Returns the predicted seconds for `count` items, from the mean time of an item. The result is
  /// at least the measured time. Returns 0 if no item was done.
  double seconds_for(double count) const;
  /// Returns the predicted seconds for `count` videos. The measured time of a video for which
  /// part() was called is scaled to the video's whole length. If part() was called for no video,
  /// returns seconds_for().
  double seconds_for_videos(double count) const;
  /// Returns the number of videos for which part() was called.
  std::size_t timed() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    Clock::time_point begin;
    double done;
  };

  const double most_seconds_;
  mutable std::mutex mutex_;  // guards the members below
  std::optional<Clock::time_point> begin_;
  int phases_ = 0;
  double done_ = 0, elapsed_ = 0;
  std::map<const void*, Open> open_;  // unfinished videos
  Clock::time_point last_;
  double busy_ = 0;             // seconds in which a video was worked on
  double sum_ = 0, whole_ = 0;  // seconds for the finished parts, and predicted for whole videos
  std::size_t timed_ = 0;
};

}  // namespace vfm::cli

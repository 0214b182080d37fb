// Progress on stderr: "vfm-clip  120/1000 clips  14.2/s  ETA 1m02s  note  place".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/progress.h"

namespace vfm::cli {

/// line: one line, rewritten in place (on a terminal; else a line each time). log: a full line a
/// minute.
enum class MeterStyle { line, log };

/// Silent for the first second, then at most ten times a second. Thread-safe.
class Meter : public Progress {
 public:
  Meter(std::string program, MeterStyle style, bool terminal);

  void start(std::string_view unit, std::uint64_t total) override;
  void set_total(std::uint64_t total) override;
  void add(std::uint64_t done) override;
  void note(std::string_view text) override;
  void place(std::string_view text) override;
  void part(const void* item, double done) override;

  /// Erases the drawn line, so that a message can be printed; the next update draws it again.
  void clear();
  /// Draws the last state and ends the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);
  std::string text(Clock::time_point now) const;

  std::mutex mutex_;
  std::string program_, unit_, note_, place_;
  MeterStyle style_;
  bool terminal_, drawn_ = false, ever_ = false;
  std::uint64_t done_ = 0, total_ = 0;
  std::map<const void*, double> parts_;  // of items that are not done
  Clock::time_point begin_, last_;
};

}  // namespace vfm::cli

// Inside lib/dist only: how long a rank waits for the others in a section, learnt from the last
// instances of the section.
//
// All steps of a run take about as long, so after some of them a rank that is late by far more is
// stuck. That holds for the sections "step" and "validation" alone: "setup" comes once, and the
// time of a "checkpoint" is that of disks. A "step beside a checkpoint" may find its disk busy.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace vfm::dist {

class SectionTimes {
 public:
  static constexpr std::size_t kLast = 50, kEnough = 5;
  static constexpr double kTimes = 3;
  static constexpr std::string_view kBeside = "step beside a checkpoint";

  /// A section begins at `now`, in seconds of any clock, and the one before ends. Returns the limit
  /// in seconds of a wait in it: `limit`, or, where kEnough instances are known, kTimes their
  /// median, but at least `least` and at most `limit`. In kBeside it is that of
  /// steps, but at least kTimes `least`. With a `limit` of 0 there is none, and with a `least` of 0
  /// none is learnt.
  double begin(std::string_view what, double limit, double least, double now);
  /// Whether the last limit was learnt.
  bool learnt() const { return learnt_; }

 private:
  std::map<std::string, std::deque<double>, std::less<>> last_;
  std::string what_;
  double since_ = 0;
  bool learnt_ = false;
};

}  // namespace vfm::dist

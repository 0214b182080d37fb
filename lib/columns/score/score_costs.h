// The costs that a dry run reports for a model that scores captions: floating-point operations of a
// clip, counted (models/vlm/answer_cost.h) from the scored captions.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/json_fwd.h"

namespace vfm::columns {

class ScoreCosts {
 public:
  /// FLOPs of one caption: with the video (0 if known from its writing), and without.
  void add(double with, double without);

  /// {"clips", "written"}, where "written" counts clips with kept tokens, and the mean "flops" of a
  /// clip: {"with_video", "alone"}. Null if no clip was added.
  Json to_json() const;
  /// The same in words, a line.
  std::string words() const;

 private:
  mutable std::mutex mutex_;  // guards all
  double with_ = 0, without_ = 0;
  std::int64_t clips_ = 0, written_ = 0;
};

}  // namespace vfm::columns

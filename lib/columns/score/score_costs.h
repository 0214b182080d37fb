// What a dry run reports about a model that scores captions: floating-point operations (FLOPs) a
// clip, counted from the scored captions (models/vlm/answer_cost.h).
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
  /// Adds the FLOPs of one caption: with the video (0 if its tokens were kept), and without.
  void add(double with, double without);

  /// Counts {"clips", "written"} ("written": clips with kept tokens), and the mean "flops" a clip:
  /// {"with_video", "alone"}. Null if no clip was added.
  Json to_json() const;
  /// The same as a line of text.
  std::string words() const;

 private:
  mutable std::mutex mutex_;  // guards all
  double with_ = 0, without_ = 0;
  std::int64_t clips_ = 0, written_ = 0;
};

}  // namespace vfm::columns

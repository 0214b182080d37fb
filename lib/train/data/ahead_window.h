// How far reading may be ahead of the thread that takes what is read, in bytes. This is only the
// accounting, without a clock or threads; train/data/step_reader.h has the threads.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "train/recipe/recipe.h"

namespace vfm::train {

/// Samples of at most this many steps are read ahead, however small they are.
constexpr std::int64_t kMostStepsAhead = 256;

/// Bytes of samples that a rank may hold before they become part of a batch, for
/// train/cost/memory.h. `own` is the bytes that this rank reads for one step; `shared` says whether
/// ranks share the reading of samples.
double bytes_ahead(const Recipe& recipe, double own, bool shared);

class AheadWindow {
 public:
  /// `limit` is in bytes.
  explicit AheadWindow(std::int64_t limit) : limit_(limit) {}

  /// True if one more item of this size may be read now: it fits, or nothing else is held.
  bool may_read(std::int64_t bytes) const { return count_ == 0 || bytes <= limit_ - held_; }
  /// Call add() when an item was read and take() when it was taken.
  void add(std::int64_t bytes) { held_ += bytes, ++count_; }
  void take(std::int64_t bytes) { held_ -= bytes, --count_; }
  void clear() { held_ = 0, count_ = 0; }

 private:
  std::int64_t limit_, held_ = 0;
  std::size_t count_ = 0;
};

}  // namespace vfm::train

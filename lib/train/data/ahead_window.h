// How far reading may be ahead of who takes what is read: by bytes. The bookkeeping alone, so that
// it can be tried with any clock; whose threads wait for it is train/data/step_reader.h.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "train/recipe/recipe.h"

namespace vfm::train {

/// Of so many steps at most samples are read ahead, however small they are.
constexpr std::int64_t kMostStepsAhead = 256;

/// Bytes of samples that a rank may hold of steps before they are a batch's, by the sizes of one
/// step's: for train/cost/memory.h. `own` is what this rank reads of it.
double bytes_ahead(const Recipe& recipe, double own, bool shared);

class AheadWindow {
 public:
  /// Of so many bytes.
  explicit AheadWindow(std::int64_t limit) : limit_(limit) {}

  /// Whether one more, of so many bytes, may be read now: it fits, or there is none.
  bool may_read(std::int64_t bytes) const { return count_ == 0 || bytes <= limit_ - held_; }
  /// It was read; it was taken.
  void add(std::int64_t bytes) { held_ += bytes, ++count_; }
  void take(std::int64_t bytes) { held_ -= bytes, --count_; }
  void clear() { held_ = 0, count_ = 0; }

 private:
  std::int64_t limit_, held_ = 0;
  std::size_t count_ = 0;
};

}  // namespace vfm::train

// The losses and gradient norms of the last steps, and whether those of a step are spikes
// ('train.skip_spikes'): far above the median of what came before.
//
// All ranks give it the same numbers, and so decide alike. Steps that were skipped are not among
// the last steps. It is part of a checkpoint, so a resumed run decides as one that was not stopped.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::train {

class RecentSteps {
 public:
  static constexpr std::size_t kSteps = 100;

  /// True if the loss or the norm is over `factor` times the median of the last kSteps. False as
  /// long as there are fewer, and for what is not a number.
  bool is_spike(double loss, double norm, double factor) const;
  void add(double loss, double norm);
  bool empty() const { return losses_.empty(); }

  Json to_json() const;
  /// Throws Error if `value` is not of the form that to_json() returns.
  static RecentSteps from_json(const Json& value, std::string_view what);

 private:
  std::vector<double> losses_, norms_;  // the oldest first
};

}  // namespace vfm::train

// Sums since the last line of metrics.jsonl. The checkpoint holds them, so that a resumed run
// writes the same next line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "train/step/trainer.h"

namespace vfm::train {

struct LogSums {
  LossSums loss;  ///< sum over the steps that were not skipped
  std::int64_t steps = 0, skipped = 0;
  double read_bytes = 0;
  double gradient_norm = 0, learning_rate = 0;  ///< of the last step that was not skipped

  void add(const StepResult& result);
  /// A line of metrics.jsonl for the steps up to `state`.
  Json record(const RunState& state) const;
  Json to_json() const;
  /// Throws Error if `value` is not of the form that to_json() returns.
  static LogSums from_json(const Json& value);
};

}  // namespace vfm::train

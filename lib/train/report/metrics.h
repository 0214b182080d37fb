// What a run writes about itself, on rank 0: metrics.jsonl, timing.jsonl, TensorBoard events.
//
// metrics.jsonl holds only what the recipe and the data decide, so that a run that was killed and
// resumed ends with the same file as one that was not: on resume it is cut back to the checkpoint's
// step. What depends on the machine goes to timing.jsonl. TensorBoard's files get both, and a new
// one begins with each start of the program. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "io/file.h"
#include "train/report/tensorboard.h"

namespace vfm::train {

/// Cuts a JSON Lines file back to the lines whose "step" is at most `step`, up to the first that is
/// not, or is malformed (a line that a kill cut short). An absent file stays absent.
void truncate_log(const std::string& path, std::int64_t step);

class MetricsLog {
 public:
  /// Opens the files in `run` to append after `step` (0: from the beginning).
  MetricsLog(const std::string& run, const std::string& host, std::int64_t step);

  /// One line each, flushed to the system at once. Both have "step". Numbers become scalars named
  /// after their key: train/KEY, val/KEY (for keys that begin with "val_") and timing/KEY; those in
  /// an object val/KEY/NAME, as val/sigmas/0.1.
  void metrics(const Json& record);
  void timing(const Json& record);
  /// Makes metrics.jsonl durable: before the checkpoint that it must not lag behind.
  void sync();

 private:
  void events(const Json& record, const std::string& group);

  io::File metrics_, timing_;
  EventWriter events_;
};

}  // namespace vfm::train

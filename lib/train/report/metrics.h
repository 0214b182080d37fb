// The files that a run writes about itself, on rank 0: metrics.jsonl, timing.jsonl, TensorBoard
// events.
//
// metrics.jsonl depends only on the recipe and the data. On resume it is cut back to the
// checkpoint's step: so a run that was killed and resumed ends with the same file as one that was
// not. Data that depend on the machine go to timing.jsonl. TensorBoard's files get both; each start
// of the program begins a new one. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "io/growing_file.h"
#include "train/report/tensorboard.h"
#include "train/report/whole_appends.h"

namespace vfm::train {

/// Cuts a JSON Lines file before the first line that is malformed (a kill may cut a line short) or
/// whose "step" is above `step`. An absent file stays absent.
void truncate_log(const std::string& path, std::int64_t step);

class MetricsLog {
 public:
  /// Opens the files in `run` to append after `step` (0: from the beginning).
  MetricsLog(const std::string& run, const std::string& host, std::int64_t step);

  /// Write one line each, flushed to the system at once; after a failure of the disk, later. Both
  /// records have "step". Numbers become scalars named after their key: train/KEY, val/KEY (for
  /// keys that begin with "val_") and timing/KEY. Numbers in an object become val/KEY/NAME, such as
  /// val/sigmas/0.1. The slowest rank is a text, timing/slowest_rank.
  void metrics(const Json& record);
  void timing(const Json& record);
  /// Makes metrics.jsonl durable, and puts all files into the bucket of a run there. Call it before
  /// a checkpoint, which must not be ahead of it, and at the end. Another thread may write
  /// meanwhile.
  void sync();

 private:
  void events(const Json& record, const std::string& group);

  /// A file of lines that grows.
  struct Log {
    Log(std::string path, std::int64_t step);
    void add(const Json& record);
    io::GrowingFile place;
    WholeAppends lines;
  };

  Log metrics_, timing_;
  EventWriter events_;
};

}  // namespace vfm::train

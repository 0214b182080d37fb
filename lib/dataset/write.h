// The second pass of vfm-shard, which reads samples again in shuffled order and writes shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "dataset/planned.h"
#include "dataset/sample_reader.h"
#include "share/slots.h"

namespace vfm::dataset {

/// Thread-safety: write() from any thread.
class ShardWriter {
 public:
  /// Writes to the folder `output`. Unpacked tars are in the folder `unpacked`. `plan` must outlive
  /// this.
  ShardWriter(const WritePlan& plan, std::string output, std::string unpacked);

  /// Writes the shard and then its record X.json, unless both exist. Returns the manifest record.
  /// Throws Error if a sample cannot be read, or if an input has changed since the scan. Throws
  /// Stopped.
  Json write(const PlannedShard& shard) const;

 private:
  std::vector<Item> take_some(std::string_view& rest) const;

  const WritePlan& plan_;
  std::string output_;
  SampleReader reader_;
};

/// Every `step`-th shard of a plan, from `first` on.
struct ShardChoice {
  std::size_t first = 0, step = 1;
};
/// Writes these shards. Calls `done` with the manifest record of each, in the order of the plan.
/// Throws what ShardWriter::write() throws.
void write_shards(const WritePlan& plan, const ShardWriter& writer, const ShardChoice& choice,
                  share::Slots& slots, Progress& progress,
                  const std::function<void(Json& record)>& done);

}  // namespace vfm::dataset

// The second pass of vfm-shard, which reads samples again in shuffled order and writes shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "dataset/plan.h"
#include "dataset/sample_reader.h"

namespace vfm::dataset {

/// Thread-safety: write() from any thread.
class ShardWriter {
 public:
  /// Both arguments must outlive this.
  ShardWriter(const Scan& scan, const ShardOptions& options);

  /// Writes the shard and then its record X.json, unless both exist. Returns the manifest record.
  /// `items` are the shard's samples as PlannedItems::pack() returned them. Throws Error if a
  /// sample cannot be read, or if an input has changed since the scan. Throws Stopped.
  Json write(const PlannedShard& shard, std::string_view items) const;

 private:
  const Scan& scan_;
  const ShardOptions& options_;
  SampleReader reader_;
};

}  // namespace vfm::dataset

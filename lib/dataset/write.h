// The second pass of vfm-shard: it re-reads samples in shuffled order, and writes shards.
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
  /// Both must outlive it.
  ShardWriter(const Scan& scan, const ShardOptions& options);

  /// Writes the shard and its record X.json, in this order, unless both are there; returns its
  /// manifest record. `items`: PlannedItems::pack() of its samples. Throws Error, also if an input
  /// changed since it was scanned; Stopped.
  Json write(const PlannedShard& shard, std::string_view items) const;

 private:
  const Scan& scan_;
  const ShardOptions& options_;
  SampleReader reader_;
};

}  // namespace vfm::dataset

// The second pass of vfm-shard: samples are re-read in shuffled order, shards are written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "dataset/plan.h"

namespace vfm::dataset {

/// Thread-safety: write() from any thread.
class ShardWriter {
 public:
  /// Both must outlive it.
  ShardWriter(const Scan& scan, const ShardOptions& options);
  ~ShardWriter();

  /// Writes the shard and its record X.json, in this order, unless both are there; returns its
  /// manifest record. `items`: PlannedItems::pack() of its samples. Throws Error, also if an input
  /// changed since it was scanned; Stopped.
  Json write(const PlannedShard& shard, std::string_view items) const;

 private:
  class Readers;
  const Scan& scan_;
  const ShardOptions& options_;
  std::unique_ptr<Readers> readers_;
};

}  // namespace vfm::dataset

// Reads samples again after the scan, for the shards and the report. Thread-safety: read() from any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "dataset/join.h"
#include "dataset/scan.h"
#include "shard/reader.h"

namespace vfm::dataset {

class SampleReader {
 public:
  /// Both arguments must outlive this.
  SampleReader(const Scan& scan, const ShardOptions& options);
  ~SampleReader();

  /// Reads and joins an item as the scan did. The result has views into `buffers`, which has a
  /// buffer for each column and may be used again for the next item. Throws Error if the sample
  /// cannot be read, or if the input has changed since the scan.
  JoinedSample read(const Item& item, std::vector<shard::ReadBuffer>& buffers) const;

 private:
  class Tars;
  const Scan& scan_;
  const ShardOptions& options_;
  std::unique_ptr<Tars> tars_;
};

}  // namespace vfm::dataset

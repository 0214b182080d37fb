// Reads samples again after the scan, in any order, for the shards and for the page of --report.
// Thread-safety: read() from any thread.
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

  /// Reads and joins an item as the scan did. The result has views into `buffers`, one for each
  /// column, which are reused. Throws Error, also if the input has changed since the scan.
  JoinedSample read(const Item& item, std::vector<shard::ReadBuffer>& buffers) const;

 private:
  class Tars;
  const Scan& scan_;
  const ShardOptions& options_;
  std::unique_ptr<Tars> tars_;
};

}  // namespace vfm::dataset

// Reads samples again after the scan, for the shards and the report. Thread-safety: read() from any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataset/item.h"
#include "dataset/join.h"
#include "shard/reader.h"

namespace vfm::dataset {

class SampleReader {
 public:
  /// `inputs` must outlive this. `rekey` and `limits` are those of the scan. Compressed tars are
  /// read from their copies in the folder `unpacked`. A copy that is not there is made.
  SampleReader(const std::vector<InputShard>& inputs, bool rekey, const shard::ReadLimits& limits,
               std::string unpacked);
  ~SampleReader();

  /// Reads and joins an item as the scan did. The result has views into `buffers`, which has a
  /// buffer for each column and may be used again for the next item. Throws Error if the sample
  /// cannot be read, or if the input has changed since the scan.
  JoinedSample read(const Item& item, std::vector<shard::ReadBuffer>& buffers) const;

 private:
  class Tars;
  const std::vector<InputShard>& inputs_;
  bool rekey_;
  std::unique_ptr<Tars> tars_;
};

}  // namespace vfm::dataset

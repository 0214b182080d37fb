// Reads samples again after the scan, for the shards and the report. Thread-safety: read() from any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
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

  /// The bytes of an item's columns. Empty for what read() must read itself.
  using Fetched = std::vector<std::string>;
  /// Reads items of objects (io/remote/address.h) with few requests, many at once. Leaves local
  /// tars, and what cannot be read, to read(). Has an element for each item.
  std::vector<Fetched> fetch(std::span<const Item> items) const;
  /// Reads and joins an item as the scan did. The result has views into `buffers`, which has a
  /// buffer for each column and may be used again for the next item, and into `fetched`. Throws
  /// Error if the sample cannot be read, or if the input has changed since the scan.
  JoinedSample read(const Item& item, std::vector<shard::ReadBuffer>& buffers,
                    const Fetched& fetched = {}) const;

 private:
  class Tars;
  const std::vector<InputShard>& inputs_;
  bool rekey_;
  std::unique_ptr<Tars> tars_;
};

}  // namespace vfm::dataset

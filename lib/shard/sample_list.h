// DIR/samples.bin: the samples of all shards of a dataset in one file, as the shards' own indexes
// list them. Who must know all samples before the first is read, as training on clips does, reads
// it in place of several files of each shard. It may be damaged or hostile.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/hash.h"
#include "io/text_writer.h"
#include "shard/dataset_meta.h"

namespace vfm::shard {

std::string sample_list_path(const std::string& directory);

class SampleListWriter {
 public:
  explicit SampleListWriter(const std::string& path);
  /// Adds the next shard: its samples in order, and then itself.
  void add(const IndexedSample& sample);
  void add(const DatasetShard& shard);
  void finish();

 private:
  void put(const std::string& bytes);

  io::TextWriter file_;
  Hasher hasher_;
  std::string samples_;                              // of the shard that is next
  std::map<std::string, std::uint64_t> extensions_;  // their numbers, in order of the first use
};

/// Calls `shard` for each shard in order, and if that returns true, `sample` for each of its
/// samples, without offsets. Throws Error if the list is damaged.
void read_sample_list(const std::string& path,
                      const std::function<bool(const DatasetShard&)>& shard,
                      const std::function<void(const IndexedSample&)>& sample);

}  // namespace vfm::shard

// A shard that is open for reads of samples: its index and, in a bucket, the object by ranges.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/file_cache.h"
#include "shard/reader.h"

namespace vfm::data {

/// Thread-safety: const members from any thread.
struct OpenShard {
  explicit OpenShard(const std::string& tar) : reader(tar) {
    if (reader.remote() != nullptr) object = io::CachedFile::open(tar);
  }
  shard::IndexedReader reader;
  std::shared_ptr<io::CachedFile> object;  ///< null for a local or compressed tar
};

}  // namespace vfm::data

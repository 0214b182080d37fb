// Reads single offsets from a tar's index (X.tar.idx).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "io/file.h"

namespace vfm::shard {

class StoredOffsets {
 public:
  /// Opens the index of the tar `path`. Throws Error.
  explicit StoredOffsets(const std::string& path);
  /// Returns the offset of sample `i`. Throws Error if the index has no such sample.
  std::uint64_t at(std::int64_t i) const;

 private:
  io::File index_;
  std::int64_t samples_;
};

}  // namespace vfm::shard

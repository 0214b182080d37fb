// The index of a tar (X.tar.idx), of which single numbers are read.
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
  /// Where sample `i` begins, as the index says. Throws Error if it has no such sample.
  std::uint64_t at(std::int64_t i) const;

 private:
  io::File index_;
  std::int64_t samples_;
};

}  // namespace vfm::shard

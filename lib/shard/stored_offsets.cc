// SPDX-License-Identifier: Apache-2.0
#include "shard/stored_offsets.h"

#include <algorithm>

#include "base/error.h"
#include "shard/writer.h"

namespace vfm::shard {

StoredOffsets::StoredOffsets(const std::string& path)
    : index_(io::File::open_regular(energon_index_path(path))),
      samples_(static_cast<std::int64_t>(index_.size() / sizeof(std::uint64_t)) - 1) {}

std::uint64_t StoredOffsets::at(std::int64_t i) const {
  if (i < 0 || i >= samples_)
    fail("'{}' has no sample {}, it has {}", index_.path(), i, std::max<std::int64_t>(0, samples_));
  if (i == 0) return 0;  // IndexedReader ignores this number too.
  std::uint64_t offset = 0;
  index_.pread_exact(&offset, sizeof offset, static_cast<std::uint64_t>(i) * sizeof offset);
  return offset;
}

}  // namespace vfm::shard

// Computes a shard's entries in an index: the list and code of each vector.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/held_json.h"
#include "columns/search/inverted_file.h"
#include "columns/search/vector_index.h"
#include "io/error_log.h"
#include "shard/reader.h"

namespace vfm::columns {

/// Scales the vector to length 1. Returns false if the vector's size is not model.dim, or if the
/// vector cannot be scaled.
bool usable(StoredVector& vector, const IndexModel& model);

struct CodedShard {
  std::string rows;  ///< Written by put_coded_row(). Empty if no vector can be indexed.
  IndexedShard shard;
  std::vector<io::Fault> errors;
};

class ShardCoder {
 public:
  /// `inverted` must have the centres and words of `model`. Both must outlive this object.
  ShardCoder(const IndexModel& model, const InvertedFile& inverted,
             const shard::ReadLimits& limits);

  /// Reads and codes all vectors of `shard`, whose `tar`, `files` and `rows` must be set. Records
  /// an error for an unreadable vector, and for a vector whose encoder is not model.encoder. Skips
  /// a vector for which usable() returns false. Throws Stopped.
  CodedShard code(const IndexedShard& shard) const;

 private:
  class Pack;

  const IndexModel& model_;
  const InvertedFile& inverted_;
  shard::ReadLimits limits_;
  HeldJson identity_;
};

}  // namespace vfm::columns

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

/// Scales the vector to length 1. Returns false if an index of this model cannot take it.
bool usable(StoredVector& vector, const IndexModel& model);

struct CodedShard {
  std::string rows;  ///< from put_coded_row(); empty: no vector can be indexed
  IndexedShard shard;
  std::vector<io::Fault> errors;
};

class ShardCoder {
 public:
  /// `inverted` is made of `model`. Both must outlive this object.
  ShardCoder(const IndexModel& model, const InvertedFile& inverted,
             const shard::ReadLimits& limits);

  /// Reads all vectors of `shard`, whose `tar`, `files` and `rows` are set. Unreadable vectors, and
  /// vectors of an encoder other than the model's, are errors. Vectors that usable() refuses are
  /// skipped. Throws Stopped.
  CodedShard code(const IndexedShard& shard) const;

 private:
  class Pack;

  const IndexModel& model_;
  const InvertedFile& inverted_;
  shard::ReadLimits limits_;
  HeldJson identity_;
};

}  // namespace vfm::columns

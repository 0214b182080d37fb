// Computes an index's entries for a shard: the list and code of each vector.
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

/// True if an index of this model takes the vector. If so, scales it to length 1.
bool usable(StoredVector& vector, const IndexModel& model);

struct CodedShard {
  std::string rows;  ///< by put_coded_row(); empty: none of its vectors is taken
  IndexedShard shard;
  std::vector<io::Fault> errors;
};

class ShardCoder {
 public:
  /// Both must outlive it. `inverted`: of the model.
  ShardCoder(const IndexModel& model, const InvertedFile& inverted,
             const shard::ReadLimits& limits);

  /// Reads all vectors of `shard`, whose tar, files and rows are known. A vector that does not fit
  /// is an error; one without length is skipped. Throws Stopped.
  CodedShard code(const IndexedShard& shard) const;

 private:
  class Pack;

  const IndexModel& model_;
  const InvertedFile& inverted_;
  shard::ReadLimits limits_;
  HeldJson identity_;
};

}  // namespace vfm::columns

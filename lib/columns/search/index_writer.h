// Writes an index file (columns/search/vector_index.h) from the kept part of the previous index and
// the rows of new shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "columns/search/vector_index.h"
#include "io/atomic_file.h"
#include "io/scratch_file.h"

namespace vfm::columns {

/// A row as kept in a scratch file until the index is written: 12 bytes and its code.
struct CodedRow {
  static constexpr std::uint32_t kNoList = 0xffffffff;
  std::uint32_t list = kNoList;  ///< kNoList: no vector
  std::uint64_t at = 0;
  std::string_view code;  ///< code_bytes(dim)
};
void put_coded_row(std::string& out, const CodedRow& row);

struct IndexParts {
  IndexModel model;
  std::span<const float> centres, words;
  const VectorIndex* before = nullptr;     ///< the previous index, of the same model; may be null
  std::vector<std::size_t> kept;           ///< numbers of shards of `before` to keep, ascending
  std::vector<IndexedShard> added;         ///< `first` and `hash` may be unset
  const io::ScratchFile* coded = nullptr;  ///< rows of `added`, by put_coded_row()
};

/// Writes and commits the file. Returns the number of entries. Memory: 50 bytes for each list and
/// shard, and a map of the file. Throws Error; Stopped.
std::uint64_t write_index(const IndexParts& parts, io::AtomicFile& out);

}  // namespace vfm::columns

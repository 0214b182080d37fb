// Writes the file of an index (columns/search/vector_index.h): the kept part of the previous index,
// and the rows of new shards.
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

/// A row as stored on disk until written: 12 bytes and its code.
struct CodedRow {
  static constexpr std::uint32_t kNoList = 0xffffffff;
  std::uint32_t list = kNoList;  ///< kNoList: it has no vector
  std::uint64_t at = 0;
  std::string_view code;  ///< code_bytes(dim)
};
void put_coded_row(std::string& out, const CodedRow& row);

struct IndexParts {
  IndexModel model;
  std::span<const float> centres, words;
  const VectorIndex* before = nullptr;     ///< with the same model; may be null
  std::vector<std::size_t> kept;           ///< numbers of the shards of `before` that stay, rising
  std::vector<IndexedShard> added;         ///< first, entries and hash are not asked for
  const io::ScratchFile* coded = nullptr;  ///< the rows of `added`, by put_coded_row()
};

/// Writes and commits. Returns the number of entries. Memory: 50 bytes a list and a shard; the
/// file is filled through a map. Throws Error; Stopped.
std::uint64_t write_index(const IndexParts& parts, io::AtomicFile& out);

}  // namespace vfm::columns

// Writes an index file (columns/search/vector_index.h) from kept shards of the previous index and
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

/// A row of a scratch file: `list` and `at` (12 bytes), and the code.
struct CodedRow {
  static constexpr std::uint32_t kNoList = 0xffffffff;
  std::uint32_t list = kNoList;  ///< Number of the vector's list; kNoList if the row has no vector.
  std::uint64_t at = 0;
  std::string_view code;  ///< Code of code_bytes(dim) bytes.
};
void put_coded_row(std::string& out, const CodedRow& row);

struct IndexParts {
  IndexModel model;
  std::span<const float> centres, words;
  const VectorIndex* before = nullptr;  ///< Previous index of the same model; may be null.
  std::vector<std::size_t> kept;        ///< Numbers of the kept shards of `before`, ascending.
  std::vector<IndexedShard> added;      ///< New shards; `first` and `hash` may be unset.
  const io::ScratchFile* coded = nullptr;  ///< Rows of `added`, written by put_coded_row().
};

/// Writes and commits the file. Returns the number of entries. Maps the file, and needs 50 bytes of
/// other memory for each list and each shard. Throws Error and Stopped.
std::uint64_t write_index(const IndexParts& parts, io::AtomicFile& out);

}  // namespace vfm::columns

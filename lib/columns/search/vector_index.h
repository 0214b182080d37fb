// The index file of `vfm-embed index`. With the index, a search finds vectors near a query without
// reading all shards.
//
// Lists and codes are explained in columns/search/inverted_file.h. Numbers are little-endian. A row
// is a sample. Rows are numbered in the order of the shards.
//   header, 64 bytes   "vfmindex"; version; offset and size of the facts (u64 each); XXH3-64 of
//                      the facts; XXH3-64 of the preceding 48 bytes (hashes: 16 hex digits)
//   rows               u64 each: offset of the row's vector in the tar, 0 if the row has none
//   lists              for each list: number of entries (u64), and XXH3-64 of the entries and
//                      codes
//   centres, words     f32: lists x dim, pieces x 256 x width
//   entries            u32 each, by list: row of the vector, ascending in each list
//   codes              code_bytes(dim) each, in the order of the entries
//   facts              JSON: kind, encoder, dim, lists, rows, entries, shards, hashes
// Facts, centres and words are checked when the file is opened. A list, and the rows of a shard,
// are checked before their first use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "columns/search/inverted_file.h"
#include "columns/search/stored_vectors.h"
#include "io/file.h"
#include "io/manifest.h"

namespace vfm::columns {

/// The state of a file, to detect changes.
struct IndexedFile {
  std::string path;
  /// Size in bytes, and time of the last change in ns, or a hash of an object's version.
  std::int64_t bytes = 0, mtime = 0;
  bool operator==(const IndexedFile&) const = default;
};
/// Returns the present state of a file. `bytes` is -1 for a missing file.
IndexedFile file_state(const std::string& path);

struct IndexedShard {
  std::string path;  ///< Path in the shard's record.
  HeldJson columns;  ///< Columns in the shard's record.
  std::string tar;   ///< Tar with the vectors.
  std::vector<IndexedFile> files;
  std::uint64_t first = 0, rows = 0;  ///< First row and number of rows in the index.
  std::string hash;                   ///< XXH3-64 of the rows.

  io::Record record() const;
  /// Returns the reason why the index no longer fits the shard, or "" if the index fits.
  std::string changed() const;
};

struct IndexModel {
  VectorKind kind = VectorKind::video;
  HeldJson encoder;  ///< Encoder of the first shard's samples.
  std::uint64_t dim = 0, lists = 0;
  std::uint64_t trained = 0;  ///< Number of vectors when the index was made.
};

/// The offsets of the file's parts in bytes.
struct IndexLayout {
  IndexLayout(const IndexModel& model, std::uint64_t rows, std::uint64_t entries);
  std::uint64_t rows, lists, centres, words, entries, codes, end;
};

struct IndexHeader {
  std::array<char, 8> magic;
  std::uint64_t version, facts_at, facts_bytes;
  std::array<char, 16> facts_hash, header_hash;
};
struct ListHead {
  std::uint64_t entries;
  std::array<char, 16> hash;
};
inline constexpr std::array<char, 8> kIndexMagic = {'v', 'f', 'm', 'i', 'n', 'd', 'e', 'x'};
inline constexpr std::uint64_t kIndexVersion = 1, kMostIndexDim = 1 << 16;
/// Returns whether the file begins like an index. The index may be damaged. Throws Error if the
/// file cannot be read.
bool is_index_file(const std::string& path);
/// Returns XXH3-64 of the joined parts in 16 hexadecimal digits.
std::array<char, 16> index_hash(std::initializer_list<std::string_view> parts);

/// A mapped index file. Thread-safety: const members from any thread.
class VectorIndex {
 public:
  /// Throws Error if the file cannot be read, is not an index, or is damaged.
  explicit VectorIndex(const std::string& path);

  const IndexModel& model() const { return model_; }
  const std::vector<IndexedShard>& shards() const { return shards_; }
  std::uint64_t entries() const { return entries_; }
  std::span<const float> centres() const;
  std::span<const float> words() const;
  std::uint64_t list_size(std::size_t list) const;

  using List = InvertedFile::List;
  /// Throws Error if the list is damaged.
  List list(std::size_t list) const;
  /// Returns the offset of each row's vector in the tar of shard number `shard`, or 0 for a row
  /// without a vector. Throws Error if the offsets are damaged.
  std::span<const std::uint64_t> positions(std::size_t shard) const;
  /// Returns the number of the shard that has the row. Throws Error if no shard has the row.
  std::size_t shard_of(std::uint32_t row) const;

 private:
  void read_facts(const Json& facts);
  template <class T>
  std::span<const T> part(std::uint64_t at, std::uint64_t count) const;
  [[noreturn]] void damaged(const char* what) const;

  std::string path_;
  io::MappedFile file_;
  IndexModel model_;
  std::vector<IndexedShard> shards_;
  std::uint64_t rows_ = 0, entries_ = 0;
  std::vector<std::uint64_t> begins_;  // first entry of each list
  std::vector<std::uint64_t> firsts_;  // first row of each shard
  mutable std::unique_ptr<std::atomic<bool>[]> checked_lists_, checked_shards_;
};

/// Returns the facts of an index in `folder`. Paths are relative to `folder`. `model_hash` is the
/// hash of lists, centres and words.
Json index_facts(const std::string& folder, const IndexModel& model,
                 const std::vector<IndexedShard>& shards, std::uint64_t rows, std::uint64_t entries,
                 const std::string& model_hash);

}  // namespace vfm::columns

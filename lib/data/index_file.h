// index.bin: the index of many samples. All processes of a machine map it; none reads it whole.
//
// The file lies beside index.jsonl, is made from it, and is valid only with it: the header has the
// size of index.jsonl and a hash of it. The hash is of the whole file up to 16 MiB; of a longer
// file it is of 32 pieces of 4 KiB each, evenly spaced. All numbers are little-endian, and each
// part begins at a multiple of 8. A sample takes 15 1/8 bytes in the parts from "forms" to "lines":
//
//   header   LatentIndexHeader, and zeros up to 4096
//   forms    samples x u32: the place of the sample's sizes in the table of forms
//   checks   samples x u64: entry_check() of the sample's key and hash
//   texts    samples x 3 bytes: text tokens; bit 23: the check includes the hash
//   lines    one u64 for each 64 samples: where the line of the first of them begins in index.jsonl
//
// Then tables: the forms (data::Form); runs of samples that follow one another in a shard
// (IndexRun), one run a shard in a whole set; ends of the shards' names (u64 each); and the names.
// The header has the hash of the tables. Damage in other parts shows when a sample is not what they
// say of it. Thread-safety: one thread for a writer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "data/sample_index.h"
#include "io/atomic_file.h"

namespace vfm::data {

struct LatentIndexHeader {
  static constexpr std::array<char, 8> kMagic = {'V', 'F', 'M', 'I', 'N', 'D', 'E', 'X'};
  static constexpr std::uint32_t kVersion = 1;

  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t longest_text = 0;  ///< tokens
  std::uint64_t text_tokens = 0;   ///< tokens of all samples
  std::uint64_t samples = 0, forms = 0, runs = 0, shards = 0, name_bytes = 0;
  std::uint64_t bytes = 0;       ///< size of this file
  std::uint64_t list_bytes = 0;  ///< size of index.jsonl
  std::array<char, 16> list_hash{};
  std::array<char, 32> fingerprint{};  ///< SampleIndex::fingerprint()
  std::array<char, 32> info_hash{};    ///< hash_hex() of latents.json as one line
  std::uint64_t tables_check = 0;    ///< xxh3 of the header, with 0 here, and of all tables
};

struct IndexRun {
  std::uint64_t first = 0;  ///< number of the first sample
  std::uint64_t row = 0;    ///< row of the first sample in its shard
  std::uint32_t shard = 0, unused = 0;
};

/// The offsets of the parts of a file with this header; `end` is the size of the file.
struct LatentIndexLayout {
  static constexpr std::uint64_t kBegin = 4096;
  static constexpr std::uint64_t kLines = 64;  ///< samples a line

  explicit LatentIndexLayout(const LatentIndexHeader& header);
  std::uint64_t forms, checks, texts, lines, form_table, runs, name_ends, names, end;
};

/// LatentIndexHeader::tables_check of this header and these tables.
std::uint64_t check_of_tables(LatentIndexHeader header, std::span<const std::byte> tables);

/// LatentIndexHeader::list_hash of the file `list`. Throws Error.
std::array<char, 16> hash_of_list(const std::string& list);

/// Fills an index.bin from its samples in order, and holds little of them in memory.
class IndexWriter {
 public:
  /// Writes into `file`, which the caller commits. `info` is latents.json.
  IndexWriter(io::AtomicFile& file, std::size_t samples, const Json& info);
  ~IndexWriter();

  /// `line` is where the entry's line begins in index.jsonl.
  void add(const Entry& entry, std::uint64_t line);
  /// Call it when all samples were added and `list` is the complete index.jsonl. Throws Error.
  void finish(const std::string& list);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Fills `file` from the index.jsonl `list` in two passes; the first counts lines. Throws Error
/// naming the line that is wrong.
void make_index(const std::string& list, io::AtomicFile& file, const Json& info);

/// The entries of an index.jsonl. Throws Error naming the line that is wrong.
std::vector<Entry> read_list(const std::string& list);

/// Maps the index.bin `path`, which lies beside the index.jsonl `list`. Throws Error if it is
/// damaged, or does not fit `list` or `info`.
std::unique_ptr<SampleIndex> map_index(const std::string& path, const std::string& list,
                                       const Json& info);

/// True if map_index() would take the index.bin `path`.
bool index_fits(const std::string& path, const std::string& list, const Json& info);

/// Most bytes of an index.jsonl whose samples are listed in memory, and where index.bin cannot be
/// written.
inline constexpr std::uint64_t kListInMemory = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kMostListInMemory = std::uint64_t{256} << 20;

/// The index of a split's folder, of given files (data/given_texts.h) where there are some. Maps
/// index.bin if it is there and fits. Otherwise it reads an index.jsonl of up to kListInMemory into
/// memory. For a longer one it makes index.bin; other programs that need it wait for the first. If
/// index.bin cannot be written, it reads an index.jsonl of up to kMostListInMemory into memory, and
/// refuses a longer one with Error.
std::unique_ptr<SampleIndex> open_index(const std::string& folder, const Json& info);

}  // namespace vfm::data

// index.bin: the index of many samples, which all processes of a machine map and none reads whole.
//
// Beside index.jsonl, made from it, and good for that alone: the header says its size and a hash of
// it, whole up to 16 MiB, of a longer one of 256 pieces of 4 KiB each, evenly spaced. All numbers
// are little-endian, each part begins at a multiple of 8. For each sample in order, 15 1/8 bytes:
//
//   header   IndexHeader, and zeros up to 4096
//   forms    samples x u32: the place of its sizes in the table of forms
//   checks   samples x u64: entry_check() of its key and hash
//   texts    samples x 3 bytes: text tokens; bit 23: its hash is in the check
//   lines    one u64 for each 64 samples: where the line of the first of them begins in index.jsonl
//
// Then tables: the forms (data::Form); runs of samples that follow one another in a shard
// (IndexRun), so that of a whole set there is one a shard; ends of the shards' names (u64 each);
// and the names. Their hash is in the header; of the rest what is damaged is found when a sample is
// not what it says. Thread-safety: a writer one thread.
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
  std::uint64_t text_tokens = 0;   ///< of all samples
  std::uint64_t samples = 0, forms = 0, runs = 0, shards = 0, name_bytes = 0;
  std::uint64_t bytes = 0;       ///< of this file
  std::uint64_t list_bytes = 0;  ///< of index.jsonl
  std::array<char, 16> list_hash{};
  std::array<char, 32> fingerprint{};  ///< SampleIndex::fingerprint()
  std::array<char, 32> info_hash{};  ///< hash_hex() of latents.json, in one line, as it is in that
  std::uint64_t tables_check = 0;    ///< xxh3 of the header, with 0 here, and of all tables
};

struct IndexRun {
  std::uint64_t first = 0;  ///< number of the first sample
  std::uint64_t row = 0;    ///< of that, in its shard
  std::uint32_t shard = 0, unused = 0;
};

/// Where the parts of a file with so many of each begin; the last is where it ends.
struct LatentIndexLayout {
  static constexpr std::uint64_t kBegin = 4096;
  static constexpr std::uint64_t kLines = 64;  ///< samples to one of the lines

  explicit LatentIndexLayout(const LatentIndexHeader& header);
  std::uint64_t forms, checks, texts, lines, form_table, runs, name_ends, names, end;
};

/// LatentIndexHeader::tables_check of this header and these tables.
std::uint64_t check_of_tables(LatentIndexHeader header, std::span<const std::byte> tables);

/// What LatentIndexHeader::list_hash is of the file `list`. Throws Error.
std::array<char, 16> hash_of_list(const std::string& list);

/// Fills an index.bin from its samples in order; little of them stays in memory.
class IndexWriter {
 public:
  /// Into `file`, which the caller commits. `info` is latents.json.
  IndexWriter(io::AtomicFile& file, std::size_t samples, const Json& info);
  ~IndexWriter();

  /// `line` is where its line begins in index.jsonl.
  void add(const Entry& entry, std::uint64_t line);
  /// All samples were added, and `list` is the complete index.jsonl. Throws Error.
  void finish(const std::string& list);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Fills `file` from the index.jsonl `list`, in two passes: first lines are counted. Throws Error
/// naming the line that is wrong.
void make_index(const std::string& list, io::AtomicFile& file, const Json& info);

/// The entries of an index.jsonl. Throws Error naming the line that is wrong.
std::vector<Entry> read_list(const std::string& list);

/// An index.bin, which is mapped, beside the index.jsonl `list`. Throws Error where it is damaged,
/// or does not fit that or `info`.
std::unique_ptr<SampleIndex> map_index(const std::string& path, const std::string& list,
                                       const Json& info);

/// Whether there is an index.bin that map_index() takes.
bool index_fits(const std::string& path, const std::string& list, const Json& info);

/// The index of the folder SPLIT. Of an index.jsonl up to 16 MiB that itself, in memory, unless
/// there is an index.bin that fits; of a longer one index.bin, which is made where there is none
/// that fits: by the first program that comes, the others wait for it. Where it cannot be written,
/// index.jsonl up to 256 MiB is taken into memory, and a longer one refused with Error.
std::unique_ptr<SampleIndex> open_index(const std::string& folder, const Json& info);

}  // namespace vfm::data

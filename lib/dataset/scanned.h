// What the first pass of vfm-shard finds in one line of its input, in memory or in a file. Each
// part of a scan writes such a file, and the process that plans the dataset reads the files of all
// parts.
//
// The file has a text with the version and the working directory. For each line it has the line's
// number, the sizes of three ranges (8 bytes each), and these ranges: LineFacts, samples that were
// left out, and items.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataset/item.h"
#include "dataset/item_store.h"
#include "dataset/sample_vector.h"
#include "dataset/shown.h"
#include "io/error_log.h"
#include "io/scratch_file.h"
#include "io/sorter.h"
#include "io/text_writer.h"
#include "shard/comparisons.h"

namespace vfm::dataset {

/// The facts of a line, except those of single samples.
struct LineFacts {
  std::uint64_t line = 0;  ///< Number of the line, from 0.
  bool shard = false;      ///< Whether the line names a shard that could be read.
  InputShard input;
  std::set<std::string> fields, inside, vectors;  // as in Scan
  std::vector<shard::Comparison> compared;
  NumberNames numbers;
  VectorNames encoders;
  std::uint64_t read = 0, filtered = 0;
  std::map<std::size_t, std::uint64_t> taken_out;
  std::vector<io::Fault> errors;
};

/// A line with its samples. Thread-safety: one thread at a time.
struct Scanned : LineFacts {
  explicit Scanned(const std::string& folder) : items(folder), left_out(folder) {}
  ItemBatch items;
  io::ScratchFile left_out;  ///< Records of LeftOut::pack().
};

/// Takes a line. `shapes` and `items` are as in ItemBatch.
using UseScanned = std::function<void(LineFacts& facts, const Shapes& shapes,
                                      io::ScratchReader items, io::ScratchReader left_out)>;

/// Writes a file of lines. Thread-safety: one thread at a time.
class ScanFileWriter {
 public:
  explicit ScanFileWriter(const std::string& path);
  void add(const Scanned& scanned);
  /// Writes the file durably.
  void commit() { file_.commit(); }

 private:
  void copy(const io::ScratchFile& from);
  io::TextWriter file_;
};

/// Reads a file of lines. Thread-safety: one thread at a time.
class ScanFile {
 public:
  /// Of an object, `copy` makes a local copy (io/file_cache.h). Throws Error.
  explicit ScanFile(const std::string& path, bool copy = true);
  /// Calls `use` with the number and the place of each line.
  void for_each_line(const std::function<void(std::uint64_t line, std::uint64_t place)>& use) const;
  /// Calls `use` with the line at a place. Throws Error for a damaged file.
  void give(std::uint64_t place, const UseScanned& use) const;

 private:
  struct Block;
  Block block_at(std::uint64_t place) const;
  io::ScratchFile file_;
  std::string folder_;  // to which tars are relative
  std::uint64_t begin_ = 0;
};

/// Several files of lines, read in the order of the lines. Keeps up to 256 files open.
/// Thread-safety: one thread at a time.
class ScanFiles {
 public:
  /// Temporary files are in `folder`.
  explicit ScanFiles(const std::string& folder) : lines_(folder) {}
  /// Adds a file. Throws Error.
  void add(const std::string& path);
  /// Returns the number of lines in all files.
  std::uint64_t lines() const { return lines_.records(); }
  /// Calls `use` with each line, in order of their numbers.
  void for_each(const UseScanned& use);

 private:
  const ScanFile& open(std::size_t number);

  using Entry = std::pair<std::size_t, ScanFile>;
  std::vector<std::string> paths_;
  io::Sorter lines_;       // number, file and place of each line
  std::list<Entry> open_;  // Last used first.
  std::map<std::size_t, std::list<Entry>::iterator> by_number_;
};

}  // namespace vfm::dataset

// Assigns the sources of a dataset to the parts of the split. Sources with common content get the
// same part.
//
// Memory: one byte for each source, and nine more bytes for each source with duplicates in another
// source.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/duplicates.h"
#include "dataset/item_store.h"
#include "dataset/known_sources.h"
#include "dataset/without.h"
#include "io/scratch_file.h"
#include "io/text_writer.h"

namespace vfm::dataset {

/// An array of zeros. A memory page takes memory only after it is written.
template <class T>
class SparseArray {
 public:
  explicit SparseArray(std::size_t size = 0)
      : values_(static_cast<T*>(std::calloc(size + 1, sizeof(T))), &std::free) {
    if (!values_) throw std::bad_alloc();
  }
  T& operator[](std::size_t i) { return values_.get()[i]; }
  const T& operator[](std::size_t i) const { return values_.get()[i]; }

 private:
  std::unique_ptr<T[], decltype(&std::free)> values_;
};

class Sources {
 public:
  /// Reads the kept items, and puts both sources of each pair in `pairs` into one group. Sources in
  /// `known` keep their part if options.split has this part. All arguments must outlive this.
  Sources(ItemStore& items, const DuplicatePairs& pairs, const ShardOptions& options,
          KnownSources& known, const WithoutList& without);

  /// Assigns all sources. Warns of empty parts, and of sources with duplicates in another part.
  void assign();
  /// Returns whether the input has a source with the name or path of a known source. If the
  /// source's name is only a key such as "000042", the contents must be equal too.
  bool any_known() const { return any_known_; }
  /// Writes sources.jsonl, sorted by source. If the split has several parts, the file also has
  /// known sources that are not in the input, except sources listed in `without`.
  void write(io::TextWriter& file);

  /// Returns the part of an item's source as an index into options.split. Calls in ascending order
  /// of items are fast.
  std::size_t part_of_item(std::uint32_t item);

 private:
  static constexpr std::uint8_t kNoPart = 255;
  using Run = ItemStore::SourceRun;
  using UseRun = std::function<void(std::uint32_t source, const Run& run)>;
  /// Called after the last run of a source. `facts` lacks the split.
  using UseSource = std::function<void(std::uint32_t source, const KnownSource& facts)>;
  void walk(const UseRun& use_run, const UseSource& use_source);

  void number_sources();
  void join(const DuplicatePairs& pairs);
  void spread_parts();
  void warn_torn(std::size_t torn, std::uint32_t source);
  /// `fresh` is the number of sources to assign. `known` is the number of sources that already have
  /// a part. `together` tells whether sources with common content were counted once.
  static void warn_empty(const std::string& split, std::uint64_t fresh, std::uint64_t known,
                         bool together);
  std::uint8_t part_named(const std::string& split) const;
  std::uint32_t source_of(std::uint32_t item) const;
  std::uint32_t root(std::uint32_t source);
  /// Returns the source whose part is used: `s` if `s` has a part, else the root of its group.
  std::uint32_t place(std::uint32_t s) { return parts_[s] == kNoPart ? root(s) : s; }

  ItemStore& items_;
  const ShardOptions& options_;
  KnownSources& known_;
  const WithoutList& without_;
  bool any_known_ = false, joined_ = false;
  std::vector<std::uint8_t> parts_;
  SparseArray<std::uint32_t> above_;  // 1 + the parent in the group, or 0.
  io::ScratchFile facts_;             // random_key and number of kept samples of each source.
  io::ScratchFile source_of_;
  std::vector<std::uint32_t> block_;
  std::uint32_t block_begin_ = 0;
};

}  // namespace vfm::dataset

// A column of a shard during the scan; only for lib/dataset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataset/item.h"
#include "io/manifest.h"
#include "shard/reader.h"

namespace vfm::dataset {

/// The index by which a tar is read. beside_it: the index beside the tar, if that index seems to
/// fit; made: an index made from the tar's headers.
enum class TarIndex { beside_it, made };

/// A column of a shard, queried for keys in the order of the first column. While both columns have
/// the same order, a query costs one read. Otherwise a table of all keys of the column is made.
class ScanColumn {
 public:
  /// Unpacks a compressed tar to `scratch` first. Throws Error if no sample can be read.
  ScanColumn(const std::string& path, const std::string& scratch, const shard::ReadLimits& limits,
             TarIndex index);

  const shard::IndexedReader& reader() const { return tar_.reader; }
  /// Returns the parts of the tar that cannot be read.
  const std::vector<io::Fault>& faults() const { return tar_.faults; }
  ColumnPlace place() const { return {row_, reader().offset(row_), reader().size(row_)}; }
  /// Returns the sample at `row`. Throws what IndexedReader::view() throws.
  const shard::SampleView& at(std::int64_t row);
  /// Returns the sample with this shard::column_key(), or null if the column lacks it.
  const shard::SampleView* find(const std::string& key);
  /// Returns true if the index is wrong: a sample could not be read, but the tar is whole and has
  /// its samples elsewhere. If the index is wrong, samples read so far may lack members.
  bool index_is_wrong() const { return wrong_; }

 private:
  struct Tar {
    shard::IndexedReader reader;
    std::vector<io::Fault> faults;  // Fault::input is set later
    bool own_index = false;         // read by the index beside it
  };
  static Tar open(const std::string& path, const std::string& scratch,
                  const shard::ReadLimits& limits, TarIndex index);
  const shard::SampleView& view(std::int64_t row);
  void doubt_index();
  std::string key_at(std::int64_t row);

  Tar tar_;
  bool doubted_ = false, wrong_ = false;
  shard::ReadBuffer buffer_;
  std::int64_t next_ = 0;
  std::uint32_t row_ = 0;
  std::unordered_map<std::string, std::int64_t> rows_;
};

}  // namespace vfm::dataset

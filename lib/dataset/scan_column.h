// A column of a shard during the scan. Only for lib/dataset.
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

/// The index for reading a tar. `beside_it` is the index beside the tar, used if it seems to fit.
/// `made` is an index made from the tar's headers.
enum class TarIndex { beside_it, made };

/// A column of a shard. The caller asks find() for keys in the order in which the first column has
/// its keys. If this column has the same order, each find() takes one read. Otherwise the class
/// makes a table of all keys.
class ScanColumn {
 public:
  /// If the tar is compressed, first unpacks the tar to `scratch`. Throws Error if no sample can be
  /// read.
  ScanColumn(const std::string& path, const std::string& scratch, const shard::ReadLimits& limits,
             TarIndex index);

  const shard::IndexedReader& reader() const { return tar_.reader; }
  /// Returns the parts of the tar that cannot be read.
  const std::vector<io::Fault>& faults() const { return tar_.faults; }
  ColumnPlace place() const { return {row_, reader().offset(row_), reader().size(row_)}; }
  /// Returns the sample at `row`. Throws the errors of IndexedReader::view().
  const shard::SampleView& at(std::int64_t row);
  /// Returns the sample with this shard::column_key(), or null if the column has no such sample.
  const shard::SampleView* find(const std::string& key);
  /// Returns whether the index gives wrong places. If true, samples that at() or find() returned
  /// before may lack members.
  bool index_is_wrong() const { return wrong_; }

 private:
  struct Tar {
    shard::IndexedReader reader;
    std::vector<io::Fault> faults;  // Fault::input is not set.
    bool own_index = false;         // Whether the index beside the tar is read.
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

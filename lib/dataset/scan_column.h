// Inside lib/dataset only: a column of a shard, as the scan reads it.
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

/// By which index a tar is read: by the one beside it, if there is one that seems to fit; or by one
/// that is made by walking over it.
enum class TarIndex { beside_it, made };

/// One column of a shard, asked for keys in the order of the first column. As long as its own order
/// is that, one read a sample does; else a table of its keys is made.
class ScanColumn {
 public:
  /// A compressed tar is unpacked to `scratch` first. Throws Error where no sample can be read.
  ScanColumn(const std::string& path, const std::string& scratch, const shard::ReadLimits& limits,
             TarIndex index);

  const shard::IndexedReader& reader() const { return tar_.reader; }
  /// What is missing in the tar.
  const std::vector<io::Fault>& faults() const { return tar_.faults; }
  ColumnPlace place() const { return {row_, reader().offset(row_), reader().size(row_)}; }
  /// The sample at `row`. Throws Error as IndexedReader::view does.
  const shard::SampleView& at(std::int64_t row);
  /// The sample of this shard::column_key(), or null.
  const shard::SampleView* find(const std::string& key);
  /// A sample could not be read, and the tar itself, which is whole, says that its samples are
  /// elsewhere: then those that were read may lack members.
  bool index_is_wrong() const { return wrong_; }

 private:
  struct Tar {
    shard::IndexedReader reader;
    std::vector<io::Fault> faults;  // inputs are named later
    bool own_index = false;         // that beside it
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

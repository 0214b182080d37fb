// SPDX-License-Identifier: Apache-2.0
#include "dataset/scan_column.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/file.h"
#include "shard/columns.h"
#include "shard/tar_file.h"
#include "shard/writer.h"

namespace vfm::dataset {

ScanColumn::Tar ScanColumn::open(const std::string& path, const std::string& scratch,
                                 const shard::ReadLimits& limits, TarIndex by) {
  if (by == TarIndex::beside_it && shard::has_index(path)) {
    try {
      return {shard::IndexedReader(path, limits), {}, true};
    } catch (const Error& error) {
      log_warning("{}; reading the tar without it", error.what());
    }
  }
  std::vector<io::Fault> faults;
  std::string tar = path;
  if (io::extension(path) != "tar") {
    io::make_directories(io::dir_name(scratch));
    const shard::Unpacked unpacked = shard::unpack(path, scratch, limits);
    for (const shard::Refused& refused : unpacked.refused)
      faults.emplace_back(path, refused.why, refused.cause);
    if (!unpacked.damage.empty()) faults.emplace_back(path, unpacked.damage, unpacked.cause);
    if (unpacked.compressed) tar = scratch;
  }
  shard::TarOffsets index = shard::TarOffsets::scan(tar, path);
  if (!index.damage.empty()) faults.emplace_back(path, index.damage, Cause::format);
  return {shard::IndexedReader(tar, std::move(index), limits), std::move(faults), false};
}

ScanColumn::ScanColumn(const std::string& path, const std::string& scratch,
                       const shard::ReadLimits& limits, TarIndex index)
    : tar_(open(path, scratch, limits, index)) {}

const shard::SampleView& ScanColumn::at(std::int64_t row) {
  row_ = static_cast<std::uint32_t>(row);
  return view(row);
}

const shard::SampleView* ScanColumn::find(const std::string& key) {
  if (rows_.empty()) {
    if (next_ < reader().samples() && key_at(next_) == key) {
      row_ = static_cast<std::uint32_t>(next_++);
      return &buffer_.sample();
    }
    for (std::int64_t row = 0; row < reader().samples(); ++row)
      rows_.emplace(key_at(row), row);
  }
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &at(found->second);
}

const shard::SampleView& ScanColumn::view(std::int64_t row) {
  try {
    return reader().view(row, buffer_);
  } catch (const Error& error) {
    if (tar_.own_index && error.cause() != Cause::limit && !std::exchange(doubted_, true))
      doubt_index();
    throw;
  }
}

/// A wrong number in the index can look like a damaged sample, so compares the index with the tar.
void ScanColumn::doubt_index() {
  try {
    const shard::TarOffsets made = shard::TarOffsets::scan(reader().path(), reader().path());
    wrong_ = made.damage.empty() && made.at != reader().index().at;
  } catch (const Error&) {
    return;  // The tar is damaged. Its own index finds more samples.
  }
  if (wrong_)
    log_warning("'{}' does not fit '{}'; reading the tar without it",
                shard::energon_index_path(reader().path()), reader().path());
}

/// Returns "" if the sample cannot be read. The column then has no sample with that key.
std::string ScanColumn::key_at(std::int64_t row) {
  try {
    return shard::column_key(std::string(view(row).key));
  } catch (const Error& error) {
    log_info("{}", error.what());
    return {};
  }
}

}  // namespace vfm::dataset

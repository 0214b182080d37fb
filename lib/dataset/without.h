// vfm-shard --without: a file of sources and samples to leave out of the dataset, one a line.
//
// A line is a sample's key (also the key before vfm-shard changed it), or a source: the value of
// "source" or "source_hash" in the JSON. The lines are in memory.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json_fwd.h"

namespace vfm::dataset {

class WithoutList {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
  static constexpr std::size_t kMostLines = 4'000'000;  // each takes a hundred bytes and its length

  /// Reads the file at `path`. If `path` is empty, nothing is left out. Throws Error{usage} if the
  /// file cannot be read, is empty, or exceeds kMostBytes or kMostLines.
  explicit WithoutList(const std::string& path);
  // The deque's strings, to which the views refer, are not moved.
  WithoutList(WithoutList&&) = default;
  WithoutList(const WithoutList&) = delete;

  struct Named {
    std::size_t line = 0;  ///< index into lines()
    bool source = false;   ///< false: the line is a key
  };
  /// Returns the line that matches the sample with this JSON, or nothing.
  std::optional<Named> find(const Json& meta) const;
  /// Returns true if a line is this source or path.
  bool has(const std::string& text) const { return find(text).has_value(); }
  bool empty() const { return lines_.empty(); }
  /// Returns the distinct lines, in the order of the file.
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::optional<std::size_t> find(const std::string& text) const;

  std::deque<std::string> lines_;
  std::unordered_map<std::string_view, std::size_t> numbers_;  // of lines_
};

}  // namespace vfm::dataset

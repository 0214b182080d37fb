// vfm-shard --without: sources and samples to leave out of the dataset, one a line in a file.
//
// A line is the key of a sample (or its key before vfm-shard changed it), or a source, from
// "source" or "source_hash" of the JSON. The lines are in memory, up to kMostBytes and kMostLines.
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
  static constexpr std::size_t kMostLines = 4'000'000;  // a hundred bytes each beside its own

  /// An empty path leaves out nothing. Throws Error{usage} if the file cannot be read, is too
  /// large, or is empty.
  explicit WithoutList(const std::string& path);
  WithoutList(WithoutList&&) = default;  // what the views are of stays where it is
  WithoutList(const WithoutList&) = delete;

  struct Named {
    std::size_t line = 0;  ///< index into lines()
    bool source = false;   ///< else the key
  };
  /// The line that names the sample of this JSON.
  std::optional<Named> find(const Json& meta) const;
  /// Whether a line is this source or path.
  bool has(const std::string& text) const { return find(text).has_value(); }
  bool empty() const { return lines_.empty(); }
  /// The lines, each once, in the order of the file.
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::optional<std::size_t> find(const std::string& text) const;

  std::deque<std::string> lines_;                              // stay where they are as more come
  std::unordered_map<std::string_view, std::size_t> numbers_;  // of lines_
};

}  // namespace vfm::dataset

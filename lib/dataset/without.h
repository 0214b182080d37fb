// The file of vfm-shard --without, which lists sources and samples to leave out of the dataset.
//
// A line is a key or a source. A key is the sample's present key, or the key before vfm-shard
// changed it. A source is the value of "source" or "source_hash" in the JSON. Thread-safety: any
// thread.
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
  static constexpr std::size_t kMostLines = 4'000'000;

  /// Reads the file at `path` into memory. An empty `path` gives an empty list. Throws Error{usage}
  /// if the file cannot be read, is empty, or exceeds kMostBytes or kMostLines.
  explicit WithoutList(const std::string& path);
  // A copy would have views of the original's strings.
  WithoutList(WithoutList&&) = default;
  WithoutList(const WithoutList&) = delete;

  struct Named {
    std::size_t line = 0;  ///< Index into lines().
    bool source = false;   ///< Whether the line names a source, and not a key.
  };
  /// Returns the line that names the sample with the JSON `meta`, or nullopt.
  std::optional<Named> find(const Json& meta) const;
  /// Returns whether a line equals the source or path `text`.
  bool has(const std::string& text) const { return find(text).has_value(); }
  bool empty() const { return lines_.empty(); }
  /// Returns the distinct lines in the order of the file.
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::optional<std::size_t> find(const std::string& text) const;

  std::deque<std::string> lines_;
  std::unordered_map<std::string_view, std::size_t> numbers_;
};

}  // namespace vfm::dataset

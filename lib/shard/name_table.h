// A table of distinct names in order of arrival, numbered from 0. The table is compact, for very
// many names: a name takes its length and 16 bytes (twice that just after a growth), several times
// less than in a std::map.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::shard {

class NameTable {
 public:
  /// Returns the name's number, and whether the name is new. Throws std::length_error beyond 2^31
  /// names.
  std::pair<std::uint32_t, bool> add(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// Returns a name, valid until the next add().
  std::string_view name(std::uint32_t number) const {
    const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(text_).substr(begin, ends_[number] - begin);
  }
  std::size_t size() const { return ends_.size(); }
  /// Return all names, joined, and the offset at which each name ends.
  const std::string& text() const { return text_; }
  const std::vector<std::uint64_t>& ends() const { return ends_; }

 private:
  std::size_t slot_of(std::string_view name) const;
  void grow();

  std::string text_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> slots_;  // open addressing: number + 1, or 0
};

}  // namespace vfm::shard

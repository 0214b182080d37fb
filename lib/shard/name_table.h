// A compact table of distinct names, numbered from 0 in the order of arrival.
//
// A name takes 16 bytes more than its length, and up to twice as much just after the table has
// grown. Thread-safety: const members from any thread.
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
  /// Adds a name. Returns its number, and whether the name is new. Throws std::length_error beyond
  /// 2^31 names.
  std::pair<std::uint32_t, bool> add(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// Returns the name with this number. The result is valid until the next add().
  std::string_view name(std::uint32_t number) const {
    const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(text_).substr(begin, ends_[number] - begin);
  }
  std::size_t size() const { return ends_.size(); }
  /// text() returns all names, joined. ends() returns the offset in text() at which each name ends.
  const std::string& text() const { return text_; }
  const std::vector<std::uint64_t>& ends() const { return ends_; }

 private:
  std::size_t slot_of(std::string_view name) const;
  void grow();

  std::string text_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> slots_;  // hash table of number + 1; 0: empty slot
};

}  // namespace vfm::shard

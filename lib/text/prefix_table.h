// Finds which strings of a set begin a text, for Unigram's vocabulary and added tokens.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::text {

class PrefixTable {
 public:
  PrefixTable() = default;
  /// Of several entries with the same string, the last one is used. Empty strings are ignored.
  explicit PrefixTable(std::vector<std::pair<std::string, std::int32_t>> entries);

  bool empty() const { return entries_.empty(); }
  /// Calls found(length, value) for each string that `text` begins with, shortest first.
  template <class Found>
  void each_prefix(std::string_view text, Found found) const {
    Range range{0, entries_.size()};
    for (std::size_t length = 1; length <= text.size() && narrow(range, length, text[length - 1]);
         ++length)
      if (entries_[range.begin].first.size() == length) found(length, entries_[range.begin].second);
  }

 private:
  struct Range {
    std::size_t begin, end;
  };
  /// Narrows the range to entries whose byte `length` - 1 is `byte`. Returns false if no entry
  /// remains.
  bool narrow(Range& range, std::size_t length, char byte) const;

  std::vector<std::pair<std::string, std::int32_t>> entries_;
};

}  // namespace vfm::text

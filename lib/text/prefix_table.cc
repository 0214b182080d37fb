// SPDX-License-Identifier: Apache-2.0
#include "text/prefix_table.h"

#include <algorithm>

namespace vfm::text {
namespace {

/// Returns -1 at the end of the string, so that it comes before all bytes.
int byte_at(const std::string& text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : -1;
}

}  // namespace

PrefixTable::PrefixTable(std::vector<std::pair<std::string, std::int32_t>> entries)
    : entries_(std::move(entries)) {
  std::erase_if(entries_, [](const auto& entry) { return entry.first.empty(); });
  std::ranges::stable_sort(entries_, {},
                           [](const auto& entry) { return std::string_view(entry.first); });
  // From the end, so that the last of equal entries is kept.
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  const auto kept = std::unique(entries_.rbegin(), entries_.rend(), same);
  entries_.erase(entries_.begin(), kept.base());
  entries_.shrink_to_fit();
}

bool PrefixTable::narrow(Range& range, std::size_t length, char byte) const {
  const int wanted = static_cast<unsigned char>(byte);
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(range.begin);
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(range.end);
  const auto first = std::partition_point(
      begin, end, [&](const auto& entry) { return byte_at(entry.first, length - 1) < wanted; });
  const auto last = std::partition_point(
      first, end, [&](const auto& entry) { return byte_at(entry.first, length - 1) == wanted; });
  range = {static_cast<std::size_t>(first - entries_.begin()),
           static_cast<std::size_t>(last - entries_.begin())};
  return first != last;
}

}  // namespace vfm::text

// SPDX-License-Identifier: Apache-2.0
#include "dataset/without.h"

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "io/line_reader.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;

}  // namespace

WithoutList::WithoutList(const std::string& path) {
  if (path.empty()) return;
  try {
    io::LineReader reader(io::File::open_regular(path), "'" + path + "'");
    std::uint64_t bytes = 0;
    while (auto line = reader.next()) {
      if (!line->empty() && line->back() == '\r') line->pop_back();
      if (line->empty()) continue;
      if (line->size() > kLongestLine)
        fail("{} has {} bytes, and no source or key has more than {}", reader.where(), line->size(),
             kLongestLine);
      if (numbers_.contains(*line)) continue;
      bytes += line->size();
      if (bytes > kMostBytes || lines_.size() == kMostLines)
        fail("'{}' has more than {} or {} lines; take out what they have in common with --where",
             path, format_bytes(static_cast<double>(kMostBytes)), kMostLines);
      lines_.push_back(*std::move(line));
      numbers_.emplace(lines_.back(), lines_.size() - 1);
    }
  } catch (const Error& error) {
    fail_usage("--without: {}", error.what());
  }
  if (lines_.empty()) fail_usage("--without: '{}' names no source and no key", path);
}

std::optional<std::size_t> WithoutList::find(const std::string& text) const {
  const auto found = numbers_.find(text);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::optional<WithoutList::Named> WithoutList::find(const Json& meta) const {
  for (const char* name : {"key", "original_key", "source", "source_hash"})
    if (const auto text = get_string(meta, name))
      if (const auto line = find(*text))
        return Named{*line, std::string_view(name).starts_with("source")};
  return std::nullopt;
}

}  // namespace vfm::dataset

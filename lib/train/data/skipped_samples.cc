// SPDX-License-Identifier: Apache-2.0
#include "train/data/skipped_samples.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"

namespace vfm::train {

std::vector<std::string> read_skipped(const std::string& path) {
  const std::string text = as_usage([&] { return io::read_stream(path); });
  std::set<std::string> keys;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with('{'))
      line = as_usage([&] {
        const std::string what = fmt::format("line {} of '{}'", number, path);
        return need_string(parse_json(line, what), "input", what);
      });
    if (!line.empty()) keys.insert(std::move(line));
  }
  return {keys.begin(), keys.end()};
}

std::vector<std::size_t> find_samples(const Dataset& data, const std::vector<std::string>& keys) {
  constexpr std::size_t kTogether = 4096;
  std::vector<std::size_t> found;
  std::vector<std::uint64_t> next;
  for (std::size_t begin = 0; begin < data.size() && !keys.empty(); begin += kTogether) {
    next.resize(std::min(kTogether, data.size() - begin));
    std::iota(next.begin(), next.end(), std::uint64_t{begin});
    data.index().expect(next);
    for (const std::uint64_t i : next)
      if (std::ranges::binary_search(keys, data.entry(i).key)) found.push_back(i);
  }
  return found;
}

}  // namespace vfm::train

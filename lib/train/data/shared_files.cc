// SPDX-License-Identifier: Apache-2.0
#include "train/data/shared_files.h"

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace vfm::train {
namespace {

/// Of each file its path, a line with its size or "-", and its contents.
std::string packed(const data::FileTexts& texts) {
  std::string all;
  for (const auto& [path, text] : texts)
    all += fmt::format("{}\n{}\n", path, text ? std::to_string(text->size()) : "-") +
           text.value_or("");
  return all;
}

data::FileTexts unpacked(std::string_view all) {
  data::FileTexts texts;
  const auto line = [&] {
    const std::size_t end = all.find('\n');
    const std::string_view one = all.substr(0, end);
    all.remove_prefix(end + 1);
    return one;
  };
  while (!all.empty()) {
    std::optional<std::string>& text = texts[std::string(line())];
    const std::string_view size = line();
    if (size == "-") continue;
    std::size_t bytes = 0;
    std::from_chars(size.data(), size.data() + size.size(), bytes);
    text = all.substr(0, bytes);
    all.remove_prefix(bytes);
  }
  return texts;
}

}  // namespace

data::FileTexts share_small_files(dist::World& world, const RunOptions& options) {
  if (world.size() == 1 || !options.synthetic.empty()) return {};
  const std::vector<std::string> folders =
      options.blend.empty() ? std::vector{options.data} : options.blend;
  std::string all;
  if (world.rank() == 0)
    all = packed(data::read_small_files(folders, std::vector<std::string>{"train", "val"}));
  return unpacked(dist::broadcast(world, all));
}

}  // namespace vfm::train

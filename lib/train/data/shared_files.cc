// SPDX-License-Identifier: Apache-2.0
#include "train/data/shared_files.h"

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace vfm::train {
namespace {

/// Of each file a line with the sizes of its path and its text ("-": no text), and both.
std::string packed(const data::FileTexts& texts) {
  std::string all;
  for (const auto& [path, text] : texts)
    all += fmt::format("{} {}\n{}{}", path.size(), text ? std::to_string(text->size()) : "-", path,
                       text.value_or(""));
  return all;
}

data::FileTexts unpacked(std::string_view all) {
  const auto take = [&all](std::size_t bytes) {
    const std::string_view one = all.substr(0, bytes);
    all.remove_prefix(one.size());
    return one;
  };
  data::FileTexts texts;
  while (!all.empty()) {
    const std::string_view sizes = take(all.find('\n') + 1);
    std::size_t of_path = 0, of_text = 0;
    const char* const end = sizes.data() + sizes.size();
    const char* const gap = std::from_chars(sizes.data(), end, of_path).ptr;
    const bool has_text = std::from_chars(gap + 1, end, of_text).ec == std::errc{};
    std::optional<std::string>& text = texts[std::string(take(of_path))];
    if (has_text) text = take(of_text);
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

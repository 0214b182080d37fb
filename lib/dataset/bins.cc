// SPDX-License-Identifier: Apache-2.0
#include "dataset/bins.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "dataset/join.h"

namespace vfm::dataset {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at + 1), text.size());
    list.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return list;
}

}  // namespace

std::string name_part(const std::vector<std::string>& extensions) {
  constexpr std::size_t kLongest = 40;
  std::string name, exact;
  bool plain = true;
  for (const std::string& extension : extensions) {
    plain = plain && extension.find_first_of("-_") == std::string::npos;
    if (!name.empty()) name += '_';
    name += extension;
    exact += extension;
    exact += '\n';
  }
  if (!plain || name.size() > kLongest) return "members" + hash_hex(exact).substr(0, 8);
  std::replace(name.begin(), name.end(), '.', '-');
  return name;
}

std::string bin_of(const Item& item, const curate::BinEdges& edges) {
  const std::string& media = item.shape.media;
  return curate::bin_name(
      edges, {item.width, item.height, item.seconds, media_kind(media) == MediaKind::image,
              media.empty() ? "" : name_part({media})});
}

std::vector<std::string> bins_of_shapes(const Shapes& shapes, const std::vector<bool>& used) {
  std::set<std::string> all;  // All members except media and json.
  for (std::size_t s = 0; s < shapes.size(); ++s)
    if (used[s])
      for (std::string& word : words_of(shapes[s].extras))
        all.insert(std::move(word));
  std::vector<std::string> bins(shapes.size());
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    if (!used[s]) continue;
    const auto has = words_of(shapes[s].extras);
    std::vector<std::string> lacks;
    for (const std::string& word : all)
      if (std::find(has.begin(), has.end(), word) == has.end()) lacks.push_back(word);
    bins[s] = shapes[s].bin;
    if (!lacks.empty()) bins[s] += "_without_" + name_part(lacks);
  }
  return bins;
}

}  // namespace vfm::dataset

// SPDX-License-Identifier: Apache-2.0
#include "dataset/duplicates.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "curate/dedup.h"

namespace vfm::dataset {
namespace {

double pixels(const Item& item) {
  return item.width * item.height;
}

bool better(const Item& a, const Item& b) {
  return std::make_tuple(-pixels(a), -static_cast<double>(a.media_bytes), std::string_view(a.key)) <
         std::make_tuple(-pixels(b), -static_cast<double>(b.media_bytes), std::string_view(b.key));
}

std::string reason(const Item& kept, const Item& dropped) {
  if (pixels(kept) != pixels(dropped))
    return fmt::format("more pixels: {}x{} against {}x{}", kept.width, kept.height, dropped.width,
                       dropped.height);
  if (kept.media_bytes != dropped.media_bytes)
    return fmt::format("more bytes at the same size: {} against {}", kept.media_bytes,
                       dropped.media_bytes);
  return "equal in size and bytes; the first by key";
}

class Finder {
 public:
  Finder(std::vector<Item>& items, FoundDuplicates& found) : items_(items), found_(found) {
    found_.dropped.resize(items.size());
    order_.resize(items.size());
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return better(items_[a], items_[b]); });
  }

  void exact() {
    std::unordered_map<std::string_view, std::uint32_t> first;
    for (const std::uint32_t i : order_) {
      const auto [at, added] = first.emplace(items_[i].content, i);
      if (!added) drop(i, at->second, "exact", 1);
    }
  }

  void near(double threshold, Slots& slots) {
    // Only what one encoder made of one kind of media can be compared.
    std::map<std::pair<bool, std::uint64_t>, std::vector<std::uint32_t>> groups;
    for (const std::uint32_t i : order_)
      if (!found_.dropped[i] && !items_[i].embedding.empty()) {
        const bool image = media_kind(items_[i].media) == MediaKind::image;
        groups[{image, items_[i].encoder}].push_back(i);
      }
    for (const auto& [name, group] : groups) {
      const std::size_t dim = items_[group.front()].embedding.size();
      std::vector<float> rows;
      rows.reserve(group.size() * dim);
      for (const std::uint32_t i : group) {
        rows.insert(rows.end(), items_[i].embedding.begin(), items_[i].embedding.end());
        std::vector<float>().swap(items_[i].embedding);
      }
      for (const auto& pair : curate::find_near_duplicates(std::move(rows), dim, threshold, slots))
        drop(group[pair.item], group[pair.keeper], "near", pair.cosine);
    }
  }

 private:
  void drop(std::uint32_t item, std::uint32_t keeper, const char* kind, double cosine) {
    found_.dropped[item] = true;
    found_.pairs.emplace_back(item, keeper);
    found_.list.push_back(
        {items_[item].key, items_[keeper].key, kind, cosine, reason(items_[keeper], items_[item])});
  }

  std::vector<Item>& items_;
  FoundDuplicates& found_;
  std::vector<std::uint32_t> order_;  // better first
};

}  // namespace

FoundDuplicates find_duplicates(std::vector<Item>& items, const ShardOptions& options,
                                Slots& slots) {
  FoundDuplicates found;
  Finder finder(items, found);
  finder.exact();
  if (options.keep_duplicates) {
    // Nothing is dropped, but the same bytes must not stand in two parts of a split.
    found.dropped.assign(items.size(), false);
    found.list.clear();
    return found;
  }
  if (options.duplicate_threshold) finder.near(*options.duplicate_threshold, slots);
  return found;
}

}  // namespace vfm::dataset

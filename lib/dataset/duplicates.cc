// SPDX-License-Identifier: Apache-2.0
#include "dataset/duplicates.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "curate/dedup.h"
#include "dataset/join.h"
#include "io/packed.h"

namespace vfm::dataset {
namespace {

std::string reason(const Item& kept, const Item& dropped) {
  if (kept.pixels() != dropped.pixels())
    return fmt::format("more pixels: {}x{} against {}x{}", kept.width, kept.height, dropped.width,
                       dropped.height);
  if (kept.media_bytes != dropped.media_bytes)
    return fmt::format("more bytes at the same size: {} against {}", kept.media_bytes,
                       dropped.media_bytes);
  return "equal in size and bytes; the first by key";
}

/// What comes first is better, but for keys.
void put_merit(std::string& out, const Item& item) {
  io::put_ordered_real(out, -item.pixels());
  io::put_ordered(out, ~item.media_bytes, 8);
}
constexpr std::size_t kMeritBytes = 16;

class Finder {
 public:
  Finder(ItemStore& items, bool drops, DuplicateList& list, DuplicatePairs& pairs)
      : items_(items), drops_(drops), list_(list), pairs_(pairs) {}

  void exact() {
    io::Sorter by_content(items_.folder());
    std::string record;
    items_.for_each_kept([&](std::uint32_t number, const Item& item) {
      record.clear();
      io::put_hash(record, item.content);
      put_merit(record, item);
      io::put_ordered(record, number, 4);
      by_content.add(record);
    });
    io::Sorter::Stream stream = by_content.sorted();
    std::string content, merit;
    std::vector<std::uint32_t> same;  // of one content
    std::size_t best = 0;             // so many of them begin it and are equal in merit
    for (std::string_view rest; stream.next(rest);) {
      const std::string_view hash = io::take_hash(rest);
      const std::string_view its_merit = io::take_bytes(rest, kMeritBytes);
      if (same.empty() || hash != content) {
        drop_all_but_one(same, best);
        same.clear();
        content = hash, merit = its_merit, best = 0;
      }
      if (its_merit == merit) ++best;
      same.push_back(static_cast<std::uint32_t>(io::take_ordered(rest, 4)));
    }
    drop_all_but_one(same, best);
  }

  std::vector<ComparedSet> near(double threshold, Slots& slots) {
    std::vector<ComparedSet> compared;
    // Only what one encoder made of one kind of media can be compared.
    std::map<std::pair<bool, std::uint64_t>, std::vector<Candidate>> groups;
    for (const EmbeddingPlace& place : items_.embeddings()) {
      if (!items_.is_kept(place.item)) continue;
      const Item item = items_.get(place.item);
      const bool image = media_kind(item.shape.media) == MediaKind::image;
      std::string order;
      put_merit(order, item);
      groups[{image, place.encoder}].push_back({order + item.key, place});
    }
    for (auto& [name, group] : groups) {
      compared.push_back({name.first, name.second, group.size()});
      std::sort(group.begin(), group.end(),
                [](const Candidate& a, const Candidate& b) { return a.order < b.order; });
      const std::size_t dim = group.front().place.dim;
      std::vector<float> rows;
      rows.reserve(group.size() * dim);
      for (const Candidate& one : group) {
        const std::vector<float> row = items_.embedding(one.place);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      for (const auto& pair : curate::find_near_duplicates(std::move(rows), dim, threshold, slots))
        drop(group[pair.item].place.item, group[pair.keeper].place.item, DuplicateKind::near,
             pair.cosine);
    }
    return compared;
  }

 private:
  struct Candidate {
    std::string order;  // better first
    EmbeddingPlace place;
  };

  void drop_all_but_one(const std::vector<std::uint32_t>& same, std::size_t best) {
    if (same.size() < 2) return;
    std::uint32_t keeper = same[0];
    std::string key = items_.get(keeper).key;
    for (std::size_t i = 1; i < best; ++i)
      if (std::string other = items_.get(same[i]).key; other < key)
        keeper = same[i], key = std::move(other);
    for (const std::uint32_t number : same)
      if (number != keeper) drop(number, keeper, DuplicateKind::exact, 1);
  }

  void drop(std::uint32_t number, std::uint32_t keeper, DuplicateKind kind, double cosine) {
    pairs_.add(number, keeper);
    if (!drops_) return;
    items_.drop(number);
    if (last_keeper_ != keeper || kept_.key.empty()) kept_ = items_.get(last_keeper_ = keeper);
    const Item dropped = items_.get(number);
    list_.add({dropped.key, kept_.key, kind, cosine, reason(kept_, dropped)});
  }

  ItemStore& items_;
  bool drops_;
  DuplicateList& list_;
  DuplicatePairs& pairs_;
  std::uint32_t last_keeper_ = 0;
  Item kept_;
};

}  // namespace

void DuplicateList::add(const Duplicate& duplicate) {
  ++counts_[static_cast<std::size_t>(duplicate.kind)];
  if (duplicate.kind == DuplicateKind::near) cosines_.push_back(duplicate.cosine);
  std::string record;
  io::put_ordered_text(record, duplicate.key);
  io::put_ordered(record, duplicate.kind == DuplicateKind::repeated, 1);
  io::put_text(record, duplicate.keeper);
  io::put_number(record, static_cast<std::uint64_t>(duplicate.kind));
  io::put_real(record, duplicate.cosine);
  io::put_text(record, duplicate.reason);
  sorter_.add(record);
}

void DuplicateList::for_each(const std::function<bool(const Duplicate&)>& use) {
  io::Sorter::Stream stream = sorter_.sorted();
  Duplicate duplicate;
  for (std::string_view rest; stream.next(rest);) {
    duplicate.key = io::take_ordered_text(rest);
    io::take_ordered(rest, 1);
    duplicate.keeper = io::take_text(rest);
    duplicate.kind = static_cast<DuplicateKind>(io::take_number(rest));
    duplicate.cosine = io::take_real(rest);
    duplicate.reason = io::take_text(rest);
    if (!use(duplicate)) return;
  }
}

void DuplicatePairs::add(std::uint32_t dropped, std::uint32_t kept) {
  const std::uint32_t pair[2] = {dropped, kept};
  file_.append({reinterpret_cast<const char*>(pair), sizeof pair});
}

void DuplicatePairs::for_each(const std::function<void(std::uint32_t, std::uint32_t)>& use) const {
  for (io::ScratchReader reader(file_); !reader.ended();) {
    std::uint32_t pair[2];
    std::memcpy(pair, reader.bytes(sizeof pair).data(), sizeof pair);
    use(pair[0], pair[1]);
  }
}

std::vector<ComparedSet> find_duplicates(ItemStore& items, const ShardOptions& options,
                                         Slots& slots, DuplicateList& list, DuplicatePairs& pairs) {
  Finder finder(items, !options.keep_duplicates, list, pairs);
  finder.exact();
  if (options.keep_duplicates || !options.duplicate_threshold) return {};
  return finder.near(*options.duplicate_threshold, slots);
}

}  // namespace vfm::dataset

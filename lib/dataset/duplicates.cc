// SPDX-License-Identifier: Apache-2.0
#include "dataset/duplicates.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "curate/vectors/dedup.h"
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

/// Better samples come first. Samples with equal merit are compared by key.
void put_merit(std::string& out, const Item& item) {
  io::put_ordered_real(out, -item.pixels());
  io::put_ordered(out, ~item.media_bytes, 8);
}
constexpr std::size_t kMeritBytes = 16;

// A record of sort_by_merit() has the kind of media, encoder, merit, key and place.
constexpr std::size_t kSetBytes = 9;
constexpr int kPlaceBytes = 4;

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
    std::vector<std::uint32_t> same;  // Samples with the same content.
    std::size_t best = 0;  // Number of samples at the front of `same` that have the best merit.
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

  std::vector<ComparedSet> near(const ShardOptions& options, share::Slots& slots) {
    std::vector<ComparedSet> compared;
    io::Sorter by_merit(items_.folder());
    sort_by_merit(by_merit);
    io::Sorter::Stream stream = by_merit.sorted();
    std::string group;
    std::vector<std::uint32_t> order;  // Places of one group's embeddings, better samples first.
    const auto end_group = [&] {
      if (order.empty()) return;
      std::string_view name = group;
      const bool images = io::take_ordered(name, 1) != 0;
      compared.push_back({images, io::take_ordered(name, 8), order.size(), std::nullopt});
      compare(compared.back(), order, options, slots);
      order.clear();
      ++set_;
    };
    for (std::string_view rest; stream.next(rest);) {
      const std::string_view name = io::take_bytes(rest, kSetBytes);
      if (name != group) {
        end_group();
        group = name;
      }
      rest.remove_prefix(rest.size() - kPlaceBytes);
      order.push_back(static_cast<std::uint32_t>(io::take_ordered(rest, kPlaceBytes)));
    }
    end_group();
    return compared;
  }

 private:
  /// Sorts the embeddings of kept samples into groups of one kind of media and one encoder, because
  /// only these can be compared. In a group better samples come first.
  void sort_by_merit(io::Sorter& sorter) {
    const auto& places = items_.embeddings();
    std::uint32_t at = 0;
    std::string record;
    items_.for_each_kept([&](std::uint32_t number, const Item& item) {
      while (at < places.size() && places[at].item < number)
        ++at;
      if (at == places.size() || places[at].item != number) return;
      record.clear();
      io::put_ordered(record, media_kind(item.shape.media) == MediaKind::image, 1);
      io::put_ordered(record, places[at].encoder, 8);
      put_merit(record, item);
      io::put_ordered_text(record, item.key);
      io::put_ordered(record, at, kPlaceBytes);
      sorter.add(record);
    });
  }

  void compare(ComparedSet& set, const std::vector<std::uint32_t>& order,
               const ShardOptions& options, share::Slots& slots) {
    const std::uint64_t n = order.size(), dim = items_.embeddings()[order.front()].dim;
    const bool all_pairs = options.duplicate_method == DuplicateMethod::exact ||
                           (options.duplicate_method == DuplicateMethod::automatic &&
                            n <= kMostExact && n * near_bytes(dim) <= options.near_bytes);
    if (!all_pairs) return compare_in_clusters(set, order, options, slots);
    std::vector<float> rows;
    rows.reserve(n * curate::near_width(dim));
    rows.resize(n * dim);
    for (std::size_t i = 0; i < n; ++i)
      read(order[i], dim, &rows[i * dim]);
    for (const auto& pair :
         curate::find_near_duplicates(std::move(rows), dim, *options.duplicate_threshold, slots))
      drop_near(order, pair);
  }

  void compare_in_clusters(ComparedSet& set, const std::vector<std::uint32_t>& order,
                           const ShardOptions& options, share::Slots& slots) {
    curate::CellSearch search;
    search.dim = items_.embeddings()[order.front()].dim;
    search.threshold = *options.duplicate_threshold;
    search.margin = curate::cell_margin(search.dim);
    std::vector<std::uint32_t> standing(order);  // Sorted by offset in the scratch file.
    std::sort(standing.begin(), standing.end());
    search.places.reserve(order.size());
    for (const std::uint32_t number : order)
      search.places.push_back(static_cast<std::uint32_t>(
          std::lower_bound(standing.begin(), standing.end(), number) - standing.begin()));
    search.read = [&](std::size_t place, float* out) { read(standing[place], search.dim, out); };
    const std::uint64_t taken = items_.embeddings().size() * kPlaceInClusters;
    search.width = curate::cell_sketch_width(
        order.size(), options.near_bytes - std::min(taken, options.near_bytes));
    if (search.width == 0) search.width = curate::kLeastSketch;
    log_info("{} samples with an embedding: near duplicates are searched in clusters",
             order.size());
    set.clusters = ComparedSet::Clusters{};
    set.clusters->margin = search.margin;
    set.clusters->most = search.most;
    set.clusters->numbers = search.width;
    set.clusters->counts = curate::find_near_duplicates_in_cells(
        search, slots, [&](const auto& pair) { drop_near(order, pair); });
  }

  /// The hash of an encoder covers the number of values, so `dim` can differ only if two hashes
  /// collide. Such a vector is read as zeros, which are never duplicates.
  void read(std::uint32_t number, std::size_t dim, float* out) const {
    const EmbeddingPlace& place = items_.embeddings()[number];
    if (place.dim != dim) {
      std::fill(out, out + dim, 0.0f);
      return;
    }
    items_.read_embedding(place, out);
  }

  void drop_near(const std::vector<std::uint32_t>& order, const curate::NearDuplicate& pair) {
    const auto& places = items_.embeddings();
    drop(places[order[pair.item]].item, places[order[pair.keeper]].item, DuplicateKind::near,
         pair.cosine);
  }

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
    list_.add({dropped.key, kept_.key, kind, cosine, reason(kept_, dropped), set_});
  }

  ItemStore& items_;
  bool drops_;
  DuplicateList& list_;
  DuplicatePairs& pairs_;
  std::uint32_t set_ = 0;
  std::uint32_t last_keeper_ = 0;
  Item kept_;
};

}  // namespace

std::string ComparedSet::method() const {
  if (!clusters) return "exact";
  return fmt::format("clusters={} margin={} most={} numbers={}", clusters->counts.cells,
                     clusters->margin, clusters->most, clusters->numbers);
}

Json ComparedSet::clusters_json() const {
  const auto& counts = clusters->counts;
  return {{"count", counts.cells},        {"margin", clusters->margin},    {"most", clusters->most},
          {"numbers", clusters->numbers}, {"looked_at", counts.looked_at}, {"cut", counts.cut},
          {"decided", counts.decided}};
}

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
  if (duplicate.kind == DuplicateKind::near) io::put_number(record, duplicate.set);
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
    duplicate.set = 0;
    if (duplicate.kind == DuplicateKind::near)
      duplicate.set = static_cast<std::uint32_t>(io::take_number(rest));
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
                                         share::Slots& slots, DuplicateList& list,
                                         DuplicatePairs& pairs) {
  Finder finder(items, !options.keep_duplicates, list, pairs);
  finder.exact();
  if (options.keep_duplicates || !options.duplicate_threshold) return {};
  return finder.near(options, slots);
}

}  // namespace vfm::dataset

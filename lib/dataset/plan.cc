// SPDX-License-Identifier: Apache-2.0
#include "dataset/plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/philox.h"
#include "base/stop.h"
#include "dataset/duplicates.h"

namespace vfm::dataset {
namespace {

constexpr std::uint64_t kEndBlocks = 1024;

/// Sources that show the same somewhere belong together: disjoint sets over the items' sources.
class Sources {
 public:
  explicit Sources(const std::vector<Item>& items) {
    std::unordered_map<std::string, std::size_t> number;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      const auto [at, added] = number.emplace(items[i].source, first_.size());
      if (added) first_.push_back(i);
      // One of several paths, whatever the order of the input.
      if (std::uint32_t& first = first_[at->second]; items[i].path < items[first].path) first = i;
      of_item_.push_back(at->second);
    }
    for (const std::uint32_t first : first_)
      names_.push_back(items[first].source);
    parent_.resize(names_.size());
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  /// The smallest name becomes the root, so that the order of joining does not matter.
  void join(std::uint32_t a, std::uint32_t b) {
    std::size_t x = root(of_item_[a]), y = root(of_item_[b]);
    if (names_[y] < names_[x]) std::swap(x, y);
    parent_[y] = x;
  }
  std::size_t count() const { return names_.size(); }
  std::size_t of_item(std::uint32_t item) const { return of_item_[item]; }
  /// An item of the source.
  std::uint32_t item_of(std::size_t source) const { return first_[source]; }
  const std::string& name(std::size_t source) const { return names_[source]; }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::string> names_;
  std::vector<std::size_t> of_item_, parent_;
};

using Parts = std::vector<std::optional<std::size_t>>;

/// The part in which an earlier run put each source.
Parts known_parts(const std::vector<Item>& items, const Sources& sources,
                  const ShardOptions& options, const KnownSources& known) {
  Parts parts(sources.count());
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const auto split = known.split_of(items[sources.item_of(s)]);
    for (std::size_t p = 0; split && p < options.split.size(); ++p)
      if (options.split[p].name == *split) parts[s] = p;
  }
  return parts;
}

/// Gives the parts of known sources to the new ones that belong to them. Where these are of two
/// parts the last one takes the new: train mostly stands first, and learns nothing of the others.
void spread_parts(const std::vector<Item>& items, Sources& sources, const ShardOptions& options,
                  Parts& parts) {
  Parts of_root(parts.size());
  std::size_t torn = 0;
  std::string example;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    if (!parts[s]) continue;
    std::optional<std::size_t>& of = of_root[sources.root(s)];
    if (of && *of != *parts[s]) {
      ++torn;
      const Item& item = items[sources.item_of(s)];
      if (example.empty()) example = item.path.empty() ? item.source : item.path;
    }
    of = std::max(of.value_or(0), *parts[s]);
  }
  if (torn > 0)
    log_warning(
        "{} sources hold duplicates of sources of another split, '{}' is one; the earlier run "
        "assigned them, so they stay, and new sources with the same contents go to '{}'; --force "
        "assigns all anew",
        torn + 1, example, options.split.back().name);
  for (std::size_t s = 0; s < parts.size(); ++s)
    if (!parts[s]) parts[s] = of_root[sources.root(s)];
}

/// The split of each item that is kept: an index into options.split. Notes in `plan` where the
/// sources are.
std::vector<std::size_t> split_items(const std::vector<Item>& items, const FoundDuplicates& found,
                                     const ShardOptions& options, const KnownSources& known,
                                     ShardPlan& plan) {
  Sources sources(items);
  for (const auto& [a, b] : found.pairs)
    sources.join(a, b);
  Parts parts = known_parts(items, sources, options, known);
  spread_parts(items, sources, options, parts);
  // Sources that have their part stand alone, the others with what belongs to them.
  const auto place = [&](std::size_t source) {
    return parts[source] ? source : sources.root(source);
  };
  std::vector<std::uint64_t> samples(sources.count());
  for (std::uint32_t i = 0; i < items.size(); ++i)
    if (!found.dropped[i]) ++samples[place(sources.of_item(i))];
  std::vector<curate::SplitSource> groups;
  std::vector<std::size_t> group_of(sources.count());
  for (std::size_t s = 0; s < samples.size(); ++s) {
    if (samples[s] == 0) continue;
    group_of[s] = groups.size();
    groups.push_back({random_key(sources.name(s)), samples[s], parts[s]});
  }
  const auto part_of = curate::assign_split(groups, options.split, options.seed);
  for (std::size_t p = 0; p < options.split.size(); ++p)
    if (std::find(part_of.begin(), part_of.end(), p) == part_of.end())
      log_warning("split '{}' is empty: there {} only {} source{} to assign", options.split[p].name,
                  groups.size() == 1 ? "is" : "are", groups.size(), groups.size() == 1 ? "" : "s");
  // A source that is missing today may come back: it is remembered, where that matters.
  if (options.split.size() > 1) plan.sources = known;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const std::size_t part = parts[s] ? *parts[s] : part_of[group_of[sources.root(s)]];
    plan.sources.put(items[sources.item_of(s)], options.split[part].name);
  }
  std::vector<std::size_t> split(items.size());
  for (std::uint32_t i = 0; i < items.size(); ++i)
    if (!found.dropped[i]) split[i] = part_of[group_of[place(sources.of_item(i))]];
  return split;
}

/// Extensions as a part of a folder's name: as they are where that is short and says which they
/// are, with '-' for the dot that a name cannot have; else by a hash.
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
  const std::string media = item.media.empty() ? "" : name_part({item.media});
  return curate::bin_name(edges, {item.width, item.height, item.seconds,
                                  media_kind(item.media) == MediaKind::image, media});
}

/// Samples of a shard have the same members. Where a bin's samples differ in them, those that lack
/// some of what others have go to a bin of their own: "..._without_txt".
std::vector<std::string> bin_items(const std::vector<Item>& items, const std::vector<bool>& dropped,
                                   const curate::BinEdges& edges) {
  std::vector<std::string> all;  // every member but media and json that there is
  const auto words = [](const std::string& text) {
    std::vector<std::string> list;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at + 1), text.size());
      list.push_back(text.substr(at + 1, end - at - 1));
      at = end;
    }
    return list;
  };
  std::string last;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (dropped[i] || items[i].extras == last) continue;
    for (const std::string& word : words(last = items[i].extras))
      if (std::find(all.begin(), all.end(), word) == all.end()) all.push_back(word);
  }
  std::sort(all.begin(), all.end());
  std::vector<std::string> bins(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (dropped[i]) continue;
    bins[i] = bin_of(items[i], edges);
    const auto has = words(items[i].extras);
    std::vector<std::string> lacks;
    for (const std::string& word : all)
      if (std::find(has.begin(), has.end(), word) == has.end()) lacks.push_back(word);
    if (!lacks.empty()) bins[i] += "_without_" + name_part(lacks);
  }
  return bins;
}

std::uint64_t place_bytes(const PlannedShard& shard) {
  Json meta = {{"key", ""}};
  const std::size_t before = dump_json(meta).size();
  add_place(meta, shard);
  return dump_json(meta).size() - before;
}

/// Bytes of the item in a tar, to the byte.
std::uint64_t bytes_in(const Item& item, std::uint64_t place) {
  constexpr std::uint64_t kBlock = 512;
  return item.tar_bytes + kBlock + (item.json_bytes + place + kBlock - 1) / kBlock * kBlock;
}

/// Cuts the items of one bin, in order, into shards.
class Cutter {
 public:
  Cutter(ShardPlan& plan, const std::vector<Item>& items, std::uint64_t limit)
      : plan_(plan), items_(items), limit_(limit) {}

  void bin(const std::string& split, const std::string& name,
           const std::vector<std::uint32_t>& members) {
    shard_ = {split, name, {}, {}, {}};
    number_ = 0;
    const std::uint64_t place = place_bytes(shard_);
    std::uint64_t bytes = kEndBlocks;
    for (const std::uint32_t i : members) {
      const std::uint64_t more = bytes_in(items_[i], place);
      if (!shard_.items.empty() && bytes + more > limit_) {
        close();
        bytes = kEndBlocks;
      }
      shard_.items.push_back(i);
      bytes += more;
    }
    close();
  }

 private:
  void close() {
    shard_.path = fmt::format("{0}/{1}/{1}-{2:06}.tar", shard_.split, shard_.bin, number_++);
    Hasher hasher;
    hasher.update("vfm-shard 1\n" + shard_.path + "\n");
    for (const std::uint32_t i : shard_.items)
      hasher.update(items_[i].key + " " + items_[i].identity + "\n");
    shard_.plan = hasher.hex128();
    plan_.shards.push_back(shard_);
    shard_.items.clear();
  }

  ShardPlan& plan_;
  const std::vector<Item>& items_;
  std::uint64_t limit_;
  PlannedShard shard_;
  int number_ = 0;
};

/// All kept items in the order of the seed: by a random number of each key, so that one sample more
/// or less does not move the others.
std::vector<std::uint32_t> shuffle(const std::vector<Item>& items, const std::vector<bool>& dropped,
                                   std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> drawn;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    if (dropped[i]) continue;
    const Random random(seed, Purpose::shard_shuffle, 0, random_key(items[i].key));
    drawn.emplace_back(std::uint64_t{random.bits(0)} << 32 | random.bits(1), i);
  }
  std::sort(drawn.begin(), drawn.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : items[a.second].key < items[b.second].key;
  });
  std::vector<std::uint32_t> order;
  for (const auto& [number, i] : drawn)
    order.push_back(i);
  return order;
}

}  // namespace

void add_place(Json& meta, const PlannedShard& shard) {
  meta["split"] = shard.split;
  meta["bin"] = shard.bin;
}

ShardPlan plan_shards(Scan& scan, const ShardOptions& options, const KnownSources& known,
                      Slots& slots) {
  const std::vector<Item>& items = scan.items;
  FoundDuplicates found = find_duplicates(scan.items, options, slots);
  ShardPlan plan;
  plan.duplicates = std::move(found.list);
  for (const Item& item : scan.repeated)
    plan.duplicates.push_back({item.key, item.key, "repeated", 1, "the same sample read twice"});
  std::sort(plan.duplicates.begin(), plan.duplicates.end(),
            [](const Duplicate& a, const Duplicate& b) { return a.key < b.key; });

  const auto split = split_items(items, found, options, known, plan);
  const auto bins = bin_items(items, found.dropped, options.edges);
  std::map<std::pair<std::size_t, std::string>, std::vector<std::uint32_t>> groups;
  for (const std::uint32_t i : shuffle(items, found.dropped, options.seed))
    groups[{split[i], bins[i]}].push_back(i);
  Cutter cutter(plan, items, options.shard_bytes);
  for (const auto& [place, members] : groups)
    cutter.bin(options.split[place.first].name, place.second, members);
  Hasher hasher;
  for (const PlannedShard& shard : plan.shards)
    hasher.update(shard.plan);
  plan.hash = hasher.hex128();
  return plan;
}

Json options_json(const ShardOptions& options) {
  Json split = Json::object();
  for (const curate::SplitPart& part : options.split)
    split[part.name] = part.share;
  Json json = {{"where", options.where.empty() ? Json() : Json(options.where)},
               {"keep_duplicates", options.keep_duplicates},
               {"duplicate_threshold", nullptr},
               {"rekey", options.rekey},
               {"resolution_edges", options.edges.resolution},
               {"aspect_edges", options.edges.aspect},
               {"duration_edges", options.edges.seconds},
               {"split", std::move(split)},
               {"shard_bytes", options.shard_bytes},
               {"seed", options.seed}};
  if (options.duplicate_threshold) json["duplicate_threshold"] = *options.duplicate_threshold;
  return json;
}

Json plan_json(const ShardPlan& plan, const ShardOptions& options) {
  Json shards = Json::array();
  for (const PlannedShard& shard : plan.shards)
    shards.push_back({{"path", shard.path}, {"samples", shard.items.size()}, {"plan", shard.plan}});
  return {{"plan", plan.hash}, {"options", options_json(options)}, {"shards", std::move(shards)}};
}

}  // namespace vfm::dataset

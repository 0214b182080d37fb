// SPDX-License-Identifier: Apache-2.0
#include "dataset/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/philox.h"
#include "dataset/bins.h"
#include "dataset/sources.h"
#include "io/file.h"
#include "io/packed.h"

namespace vfm::dataset {
namespace {

constexpr std::uint64_t kEndBlocks = 1024;

// A record of the sorted samples has the group, draw, key, shape, shard and facts without content.
constexpr int kGroupBytes = 4, kDrawBytes = 8;

std::uint64_t place_bytes(const PlannedShard& shard) {
  Json meta = {{"key", ""}};
  const std::size_t before = dump_json(meta).size();
  add_place(meta, shard);
  return dump_json(meta).size() - before;
}

std::uint64_t bytes_in(const Item& item, std::uint64_t place) {
  constexpr std::uint64_t kBlock = 512;
  return item.tar_bytes + kBlock + (item.json_bytes + place + kBlock - 1) / kBlock * kBlock;
}

/// A group is a split and a bin. Groups are numbered in the order of their shards.
struct Groups {
  std::vector<std::string> names;           // Bins, sorted.
  std::vector<std::uint32_t> bin_of_shape;

  std::uint32_t number(std::size_t part, std::uint32_t shape) const {
    return static_cast<std::uint32_t>(part * names.size() + bin_of_shape[shape]);
  }
};

Groups groups_of(const ItemStore& items) {
  std::vector<bool> used(items.shapes().size());
  items.for_each_kept_packed([&](std::uint32_t, const std::string&, std::uint32_t shape,
                                 std::uint32_t, std::string_view) { used[shape] = true; });
  const std::vector<std::string> bins = bins_of_shapes(items.shapes(), used);
  Groups groups;
  for (std::size_t s = 0; s < bins.size(); ++s)
    if (used[s]) groups.names.push_back(bins[s]);
  std::sort(groups.names.begin(), groups.names.end());
  groups.names.erase(std::unique(groups.names.begin(), groups.names.end()), groups.names.end());
  for (const std::string& bin : bins)
    groups.bin_of_shape.push_back(static_cast<std::uint32_t>(
        std::lower_bound(groups.names.begin(), groups.names.end(), bin) - groups.names.begin()));
  return groups;
}

/// Sorts the kept items by group, then by a random number of the seed and the key, so that one
/// sample more or less does not move the others.
void shuffle(const ItemStore& items, Sources& sources, const Groups& groups, std::uint64_t seed,
             io::Sorter& order) {
  std::string record;
  items.for_each_kept_packed([&](std::uint32_t number, const std::string& key, std::uint32_t shape,
                                 std::uint32_t shard, std::string_view facts) {
    const Random random(seed, Purpose::shard_shuffle, 0, random_key(key));
    record.clear();
    io::put_ordered(record, groups.number(sources.part_of_item(number), shape), kGroupBytes);
    io::put_ordered(record, std::uint64_t{random.bits(0)} << 32 | random.bits(1), kDrawBytes);
    io::put_ordered_text(record, key);
    io::put_number(record, shape);
    io::put_number(record, shard);
    io::take_hash(facts);  // The content is no longer needed.
    record += facts;
    order.add(record);
  });
}

class Cutter {
 public:
  Cutter(ShardPlan& plan, const ShardOptions& options)
      : plan_(plan), limit_(options.shard_bytes), end_(options.compress ? ".tar.zst" : ".tar") {}

  void begin(const std::string& split, const std::string& bin) {
    close();
    shard_ = {};
    shard_.split = split, shard_.bin = bin;
    number_ = 0;
    place_ = place_bytes(shard_);
  }

  /// Adds an item and its record for WritePlan::items.
  void add(const Item& item, std::string_view record) {
    const std::uint64_t more = bytes_in(item, place_);
    if (shard_.samples > 0 && bytes_ + more > limit_) close();
    if (shard_.samples++ == 0) {
      bytes_ = kEndBlocks;
      shard_.seconds = 0;
      shard_.shape = item.shape;
      shard_.path = fmt::format("{0}/{1}/{1}-{2:06}{3}", shard_.split, shard_.bin, number_++, end_);
      hasher_ = Hasher();
      hasher_.update("vfm-shard 1\n" + shard_.path + "\n");
      shard_.begin = plan_.items.size();
      check_ = Hasher();
    }
    bytes_ += more;
    plan_.items.append(record);
    check_.update(record);
    hasher_.update(item.key + " " + item.identity + "\n");
    shard_.seconds += item.seconds;
    const auto values = quantities(item);
    for (std::size_t q = 0; q < kQuantities; ++q)
      if (values[q]) plan_.ranges[q].add(*values[q]);
  }

  void close() {
    if (shard_.samples == 0) return;
    shard_.plan = hasher_.hex128();
    shard_.check = check_.hex128();
    shard_.end = plan_.items.size();
    plan_.shards.push_back(shard_);
    shard_.samples = 0;
  }

 private:
  ShardPlan& plan_;
  std::uint64_t limit_;
  const char* end_;  // of a shard's name
  PlannedShard shard_;
  Hasher hasher_, check_;
  std::uint64_t bytes_ = 0, place_ = 0;
  int number_ = 0;
};

void cut_shards(io::Sorter& order, const Groups& groups, const ShardOptions& options,
                ShardPlan& plan) {
  Cutter cutter(plan, options);
  std::optional<std::uint64_t> last;
  std::string planned;
  io::Sorter::Stream stream = order.sorted();
  for (std::string_view record; stream.next(record);) {
    if (const std::uint64_t group = io::take_ordered(record, kGroupBytes); last != group) {
      cutter.begin(options.split[group / groups.names.size()].name,
                   groups.names[group % groups.names.size()]);
      last = group;
    }
    io::take_ordered(record, kDrawBytes);
    const std::string key = io::take_ordered_text(record);
    planned.clear();
    io::put_text(planned, key);
    planned += record;
    std::string_view rest = planned;
    cutter.add(take_planned(rest, plan.shapes), planned);
  }
  cutter.close();
  Hasher hasher;
  for (const PlannedShard& shard : plan.shards)
    hasher.update(shard.plan);
  plan.hash = hasher.hex128();
}

}  // namespace

std::array<std::optional<double>, kQuantities> quantities(const Item& item) {
  std::array<std::optional<double>, kQuantities> values;
  const auto set = [&](Quantity quantity, double value) {
    values[static_cast<std::size_t>(quantity)] = value;
  };
  if (item.seconds > 0) set(Quantity::seconds, item.seconds);
  if (item.width > 0 && item.height > 0) {
    set(Quantity::shorter_side, std::min(item.width, item.height));
    set(Quantity::aspect, item.width / item.height);
  }
  set(Quantity::megabytes, static_cast<double>(item.media_bytes) / 1e6);
  return values;
}

namespace {

/// Vectors of different encoders cannot be compared, so duplicates across encoders stay.
void warn_of_encoders(const ShardOptions& options, const std::vector<ComparedSet>& compared) {
  std::set<std::uint64_t> encoders;
  for (const ComparedSet& set : compared)
    encoders.insert(set.encoder);
  if (encoders.size() > 1)
    log_warning(
        "the '{}' of the samples are of {} encoders; only those of one are compared with each "
        "other, so near duplicates across them stay",
        options.compared_member(), encoders.size());
}

Json compared_json(const ShardOptions& options, const Scan& scan, const ShardPlan& plan) {
  constexpr std::size_t kMostSets = 64;
  Json sets = Json::array();
  bool exact = true;
  for (const ComparedSet& set : plan.compared) {
    exact = exact && !set.clusters;
    if (sets.size() == kMostSets) continue;
    sets.push_back({{"media", set.images ? "image" : "video"},
                    {"encoder", scan.encoders.of(set.encoder)},
                    {"samples", set.samples}});
    if (set.clusters) sets.back()["clusters"] = set.clusters_json();
  }
  return {{"by", options.compared_member()},
          {"method", exact ? "exact" : "clusters"},
          {"sets", std::move(sets)}};
}

/// Returns the members of dataset.json that do not depend on the written shards.
Json counts_of(const ShardOptions& options, const Scan& scan, const ShardPlan& plan) {
  Json duplicates = Json::object();
  for (std::size_t kind = 0; kind < kDuplicateKinds.size(); ++kind)
    duplicates[kDuplicateKinds[kind]] = plan.duplicates.count(static_cast<DuplicateKind>(kind));
  Json json = {{"read", scan.read}, {"filtered", scan.filtered}};
  json["duplicates"] = std::move(duplicates);
  if (!plan.compared.empty()) json["near_duplicates"] = compared_json(options, scan, plan);
  if (scan.left_out.count() > 0) {
    Json left_out = Json::object();
    for (std::size_t reason = 0; reason < kLeftOutReasons.size(); ++reason)
      left_out[kLeftOutReasons[reason]] = scan.left_out.count(static_cast<LeftOutReason>(reason));
    json["left_out"] = std::move(left_out);
  }
  for (const Balanced& rule : plan.balanced)
    json["balance"].push_back(rule.json());
  return json;
}

}  // namespace

ShardPlan plan_shards(Scan& scan, const ShardOptions& options, KnownSources& known,
                      share::Slots& slots) {
  ShardPlan plan(options.output);
  ItemStore& items = scan.items;
  DuplicatePairs pairs(options.output);
  plan.compared = find_duplicates(items, options, slots, plan.duplicates, pairs);
  warn_of_encoders(options, plan.compared);
  for (const std::uint32_t number : scan.repeated) {
    const std::string key = items.get(number).key;
    plan.duplicates.add({key, key, DuplicateKind::repeated, 1, "the same clip a second time"});
  }
  plan.duplicates.park();
  if (!options.balance.rules.empty())
    plan.balanced =
        balance(items, options.balance, options.seed, scan.encoders, slots, scan.left_out);
  if (!options.report.empty()) plan.shown = pick_shown(items, options, scan.numbers, slots);
  items.forget_notes();
  scan.left_out.park();
  Sources sources(items, pairs, options, known, scan.without);
  sources.assign();
  plan.any_known = sources.any_known();
  plan.sources.emplace(io::join_path(options.output, "sources.jsonl"));
  sources.write(*plan.sources);
  items.forget_sources();
  const Groups groups = groups_of(items);
  io::Sorter order(options.output);
  shuffle(items, sources, groups, options.seed, order);
  items.forget_items();
  plan.inputs = std::move(scan.shards);
  plan.shapes = items.take_shapes();
  plan.rekey = options.rekey;
  plan.limits = options.limits;
  plan.options = options_json(options);
  cut_shards(order, groups, options, plan);
  plan.counts = counts_of(options, scan, plan);
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
  // Defaults are not written, so that plans of earlier versions stay equal.
  if (options.compared_member() != kDefaultVector)
    json["near_duplicates"] = options.compared_member();
  if (options.duplicate_method != DuplicateMethod::automatic)
    json["duplicate_method"] =
        options.duplicate_method == DuplicateMethod::exact ? "exact" : "clusters";
  if (options.compress) json["compress"] = "zstd";
  if (!options.balance.rules.empty()) {
    json["balance"] = options.balance.json();
    if (options.balance.clusters > 0) json["balance_clusters"] = options.balance.clusters;
  }
  return json;
}

Json plan_json(const WritePlan& plan) {
  Json shards = Json::array();
  for (const PlannedShard& shard : plan.shards)
    shards.push_back({{"path", shard.path}, {"samples", shard.samples}, {"plan", shard.plan}});
  return {{"plan", plan.hash}, {"options", plan.options}, {"shards", std::move(shards)}};
}

}  // namespace vfm::dataset

// A dataset planned of samples that no tar holds, in a folder of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dataset/bins.h"
#include "dataset/plan.h"
#include "io/file.h"
#include "share/slots.h"
#include "support/temporary_folder.h"

namespace vfm::dataset {

struct PlannedSamples {
  /// Calls its argument with each sample.
  using Give = std::function<void(const std::function<void(Item)>& take)>;

  PlannedSamples(const Give& give, ShardOptions given, const std::vector<KnownSource>& sources = {})
      : options(in(std::move(given), folder.path)),
        scan(options),
        known(known_of(sources, folder.path)),
        plan(plan_of(give)) {}
  explicit PlannedSamples(const std::vector<Item>& all, ShardOptions given = {},
                          const std::vector<KnownSource>& sources = {})
      : PlannedSamples(
            [&](const auto& take) {
              for (const Item& item : all)
                take(item);
            },
            std::move(given), sources) {}

  void for_each(const std::function<void(const PlannedShard& shard, const Item& item)>& use) {
    PlannedItems items(plan);
    Item item;
    for (const PlannedShard& shard : plan.shards)
      for (std::uint64_t i = 0; i < shard.samples && items.next(item); ++i)
        use(shard, item);
  }
  /// What sources.jsonl will hold.
  std::string sources() {
    if (plan.sources) plan.sources->update();
    plan.sources.reset();
    return io::read_file(folder / "sources.jsonl");
  }

  TemporaryFolder folder;
  ShardOptions options;
  Scan scan;
  KnownSources known;
  std::string conflicts;  ///< keys that came again with other contents
  ShardPlan plan;

 private:
  static ShardOptions in(ShardOptions options, const std::string& folder) {
    options.output = folder;
    return options;
  }
  static KnownSources known_of(const std::vector<KnownSource>& sources, const std::string& folder) {
    KnownSources known(folder);
    for (const KnownSource& source : sources)
      known.put(source);
    return known;
  }
  ShardPlan plan_of(const Give& give) {
    constexpr int kInShard = 1000;
    std::uint32_t shards = 0;
    ItemBatch batch(folder.path);
    int count = 0;
    give([&](Item item) {
      item.shape.bin = bin_of(item, options.edges);
      batch.add(item);
      if (++count % kInShard != 0) return;
      scan.items.take(batch, shards++);
      batch = ItemBatch(folder.path);
    });
    scan.items.take(batch, shards);
    scan.items.settle_keys([&](std::uint32_t number, const Item& item, const Item& first) {
      if (item.identity == first.identity)
        scan.repeated.push_back(number);
      else
        conflicts += item.key + " ";
    });
    share::Slots slots(1);
    return plan_shards(scan, options, known, slots);
  }
};

}  // namespace vfm::dataset

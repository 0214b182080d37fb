// Plans a dataset between the two passes of vfm-shard: duplicates, splits, bins, order and shards.
//
// The plan depends only on the scanned samples, the options, and an earlier run's splits of
// sources, not on the order of the input. Shards are in memory; their samples are in a temporary
// file, in the order of writing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "dataset/balance.h"
#include "dataset/duplicates.h"
#include "dataset/known_sources.h"
#include "dataset/scan.h"
#include "io/sorter.h"
#include "io/text_writer.h"
#include "report/html.h"

namespace vfm::dataset {

struct PlannedShard {
  std::string split, bin;
  std::string path;  ///< relative to the dataset's folder
  std::uint64_t samples = 0;
  double seconds = 0;  ///< sum over all samples
  std::string plan;    ///< hash of the planned contents
  Shape shape;         ///< the first sample's shape; all samples have its members
};

/// The quantities in the histograms of --report.
enum class Quantity { seconds, shorter_side, aspect, megabytes };
inline constexpr std::size_t kQuantities = 4;
/// Returns the quantities of a sample. Unknown quantities are not set.
std::array<std::optional<double>, kQuantities> quantities(const Item& item);

struct ShardPlan {
  explicit ShardPlan(const std::string& folder) : duplicates(folder), order(folder) {}

  DuplicateList duplicates;
  std::vector<ComparedSet> compared;  ///< searched for near duplicates
  std::vector<Balanced> balanced;     ///< results by rule
  std::optional<Shown> shown;         ///< set with options.report
  std::vector<PlannedShard> shards;   ///< sorted by split (in the given order), bin, number
  std::string hash;                   ///< hash of all plans
  std::array<report::AxisRange, kQuantities> ranges;
  bool any_known = false;                 ///< Sources::any_known()
  std::optional<io::TextWriter> sources;  ///< sources.jsonl, written but not committed
  io::Sorter order;                       ///< all samples, for PlannedItems
};

/// Iterates over the samples of a plan, shard by shard, in the order of writing.
/// Thread-safety: one thread at a time.
class PlannedItems {
 public:
  PlannedItems(const Scan& scan, ShardPlan& plan) : scan_(scan), stream_(plan.order.sorted()) {}
  /// Reads the next item, without source, path, content and embedding. Returns false at the end.
  bool next(Item& item);
  /// Returns the next `count` items as bytes, for take().
  std::string pack(std::uint64_t count);
  /// Removes the first item from the bytes of pack(), and returns it.
  static Item take(std::string_view& packed, const Shapes& shapes);

 private:
  const Scan& scan_;
  io::Sorter::Stream stream_;
};

/// Makes the plan. `known` sources keep their split. Frees the sources and items of `scan`. Throws
/// Stopped.
ShardPlan plan_shards(Scan& scan, const ShardOptions& options, KnownSources& known,
                      share::Slots& slots);

/// Returns all that decides a dataset, apart from its samples.
Json options_json(const ShardOptions& options);
/// Returns the contents of DIR/plan.json: {"plan", "options", "shards": [...]}.
Json plan_json(const ShardPlan& plan, const ShardOptions& options);

/// Adds the fields that a sample's JSON gets in its shard, "split" and "bin" in this order.
void add_place(Json& meta, const PlannedShard& shard);

}  // namespace vfm::dataset

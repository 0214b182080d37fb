// The plan of a dataset, made between the two passes of vfm-shard: duplicates, splits, bins, order
// of samples, and shards.
//
// The plan depends on the scanned samples, the options, and the splits of an earlier run's sources.
// It does not depend on the order of the input.
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
  std::string path;  ///< Path relative to the dataset's folder.
  std::uint64_t samples = 0;
  double seconds = 0;  ///< Duration of all samples in seconds.
  std::string plan;    ///< Hash of the planned contents.
  Shape shape;         ///< Shape of the first sample. All samples have the same members.
};

/// The quantities in the histograms of --report.
enum class Quantity { seconds, shorter_side, aspect, megabytes };
inline constexpr std::size_t kQuantities = 4;
/// Returns the known quantities of a sample. Unknown quantities are not set.
std::array<std::optional<double>, kQuantities> quantities(const Item& item);

struct ShardPlan {
  explicit ShardPlan(const std::string& folder) : duplicates(folder), order(folder) {}

  DuplicateList duplicates;
  std::vector<ComparedSet> compared;
  std::vector<Balanced> balanced;
  std::optional<Shown> shown;
  /// Shards sorted by split (in the given order), bin and number.
  std::vector<PlannedShard> shards;
  std::string hash;  ///< Hash of the plans of all shards.
  std::array<report::AxisRange, kQuantities> ranges;
  bool any_known = false;
  std::optional<io::TextWriter> sources;  ///< The file sources.jsonl, not yet committed.
  io::Sorter order;                       ///< All samples, for PlannedItems.
};

/// An iterator over the samples of a plan, shard by shard, in the order of writing. Thread-safety:
/// one thread at a time.
class PlannedItems {
 public:
  PlannedItems(const Scan& scan, ShardPlan& plan) : scan_(scan), stream_(plan.order.sorted()) {}
  /// Reads the next item, without source, path, content and embedding. Returns false at the end.
  bool next(Item& item);
  /// Returns the next `count` items as bytes for take().
  std::string pack(std::uint64_t count);
  /// Removes the first item from the bytes of pack(), and returns the item.
  static Item take(std::string_view& packed, const Shapes& shapes);

 private:
  const Scan& scan_;
  io::Sorter::Stream stream_;
};

/// Makes the plan. Sources in `known` keep their split. Frees the sources and items of `scan`.
/// Throws Stopped.
ShardPlan plan_shards(Scan& scan, const ShardOptions& options, KnownSources& known,
                      share::Slots& slots);

/// Returns the options that affect the dataset.
Json options_json(const ShardOptions& options);
/// Returns the contents of DIR/plan.json: {"plan", "options", "shards": [...]}.
Json plan_json(const ShardPlan& plan, const ShardOptions& options);

/// Adds the fields "split" and "bin", in this order, to the JSON of a sample in the shard.
void add_place(Json& meta, const PlannedShard& shard);

}  // namespace vfm::dataset

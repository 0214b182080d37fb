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
#include "dataset/planned.h"
#include "dataset/scan.h"
#include "io/text_writer.h"
#include "report/html.h"

namespace vfm::dataset {

/// The quantities in the histograms of --report.
enum class Quantity { seconds, shorter_side, aspect, megabytes };
inline constexpr std::size_t kQuantities = 4;
/// Returns the known quantities of a sample. Unknown quantities are not set.
std::array<std::optional<double>, kQuantities> quantities(const Item& item);

struct ShardPlan : WritePlan {
  explicit ShardPlan(const std::string& folder) : WritePlan(folder), duplicates(folder) {}

  DuplicateList duplicates;
  std::vector<ComparedSet> compared;
  std::vector<Balanced> balanced;
  std::optional<Shown> shown;
  std::array<report::AxisRange, kQuantities> ranges;
  bool any_known = false;
  std::optional<io::TextWriter> sources;  ///< The file sources.jsonl, not yet committed.
};

/// Makes the plan. Sources in `known` keep their split. Frees the sources and items of `scan`, and
/// takes its inputs. Throws Stopped.
ShardPlan plan_shards(Scan& scan, const ShardOptions& options, KnownSources& known,
                      share::Slots& slots);

/// Returns the options that affect the dataset.
Json options_json(const ShardOptions& options);
/// Returns the contents of DIR/plan.json: {"plan", "options", "shards": [...]}.
Json plan_json(const WritePlan& plan);

}  // namespace vfm::dataset

// The layout chosen for a recipe (vfm-train plan): without a GPU, and without a run.
//
// All layouts that a run accepts are costed (plan/step_time.h). First each gets a lower bound, as
// if nothing had to be recomputed. Then, the fastest first, each is costed with the least
// recomputation that fits, until ten are found that no other can beat. These ten are costed again
// with all their blocks. If one of them does not fit then, the next best settings of its layout are
// tried.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "train/cost/workload.h"
#include "train/plan/step_time.h"

namespace vfm::train {

struct RunOptions;

struct PlanRequest {
  int gpus = 1, per_node = 8;
  const models::Gpu* gpu = nullptr;
  /// With it, a layout must have the values that the recipe sets for keys of 'parallel'.
  std::optional<dist::Layout> given = {};
  /// Arguments of a run of the recipe as it is: `arguments` before the settings, `data` after them.
  std::vector<std::string> arguments = {}, data = {};
};

/// The layouts of a plan; each has its best recomputation and number of packs together.
struct Plan {
  Layouts layouts;
  /// Layouts that fit, the fastest first; the first ten are costed whole.
  std::vector<Costed> best;
  std::vector<Costed> too_big;  ///< layouts that do not fit, the least memory first
  Costed plain;                 ///< plain data parallel
  std::string plain_refused;    ///< why a run refuses plain data parallel; "": it is costed
  int slower = 0;  ///< layouts not costed, as they are slower than the first ten in any case
  /// The fastest pipeline, whether or not it fits, and the work that its stages repeat.
  std::optional<Candidate> pipeline;
  Conditioning conditioning;
  /// Largest relative difference in time between few blocks and all, among the ten.
  double whole_differs = 0;
};

PackSpread spread_of_packs(const Workload& load);
/// `recipe` is fitted to the data of `load`.
Plan make_plan(const Recipe& recipe, const Workload& load, const PlanRequest& request);

/// The plan for standard output, with the keys of vfm-train-plan(1). Needs options.recipe, and
/// options.data or options.synthetic. Throws Error{usage}.
Json plan_training(const RunOptions& options, const PlanRequest& request);
/// The verdict on plain data parallel, in words.
std::string plain_words(const Json& plain);
/// The plan in words.
std::string plan_words(const Json& plan);
/// The plan's "conditioning" in one line; "" without a pipeline.
std::string conditioning_words(const Json& conditioning);
/// Writes the plan as an HTML page.
void write_plan_page(const std::string& path, const Json& plan);

inline constexpr std::size_t kShownLayouts = 10;

}  // namespace vfm::train

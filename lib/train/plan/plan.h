// The layout chosen for a recipe (vfm-train plan): without a GPU, and without a run.
//
// All layouts that a run takes are costed (plan/step_time.h): first as if nothing had to be
// recomputed; then, the fastest first, with the least recomputation that fits, until ten are found
// that no other can beat; and these a second time with all their blocks. What fits with a few of
// them need not: then the next best way of that layout is looked for.
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
  /// Of it those keys are kept that the recipe was given.
  std::optional<ParallelRecipe> given = {};
  /// Of a run of the recipe as it is: its arguments, and those behind the settings.
  std::vector<std::string> arguments = {}, data = {};
};

/// Each layout with its best recomputation and packs together.
struct Plan {
  Layouts layouts;
  std::vector<Costed> best;     ///< that fit, the fastest first; the first ten are whole
  std::vector<Costed> too_big;  ///< that do not, the least memory first
  Costed plain;                 ///< plain data parallel
  std::string plain_refused;    ///< why a run does not take that; "": it is costed
  int slower = 0;  ///< whether they fit was not looked at: slower than the ten in any case
  /// The fastest pipeline, if it fitted: what its stages compute anew, and what sending it took.
  std::optional<Candidate> pipeline;
  Conditioning conditioning;
  double whole_differs = 0;  ///< most, of the ten: the time of a few blocks against that of all
};

PackSpread spread_of_packs(const Workload& load);
/// `recipe` is fitted to the data of `load`.
Plan make_plan(const Recipe& recipe, const Workload& load, const PlanRequest& request);

/// Of the options it wants recipe, data or synthetic. What standard output gets, with the keys that
/// vfm-train-plan(1) documents. Throws Error{usage}.
Json plan_training(const RunOptions& options, const PlanRequest& request);
/// The verdict on plain data parallel, in words.
std::string plain_words(const Json& plain);
/// The plan in words.
std::string plan_words(const Json& plan);
/// Of the plan's "conditioning" alone: one line, or "" without a pipeline.
std::string conditioning_words(const Json& conditioning);
/// And as a page.
void write_plan_page(const std::string& path, const Json& plan);

inline constexpr std::size_t kShownLayouts = 10;

}  // namespace vfm::train

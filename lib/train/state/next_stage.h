// Training in stages: a run that continues an earlier one (vfm-train --continue). Not the stages of
// a pipeline.
//
// The next stage has a folder of its own. It takes over weights, moments, average and counters of
// the earlier run's checkpoint, the scale in which that saw latents, and its recipe, of which it
// may change what may_change_in_stages() (train/recipe/recipe_field.h) says. Steps, samples and
// tokens are counted on; the schedule of the learning rate, and 'train.steps', are those of the
// stage. The stages before it stand in train.json, each with its recipe:
//
//   "stages": [{"checkpoint": path, "complete": hash of its COMPLETE, "first_step": 0,
//               "last_step": 500, "samples": ..., "tokens": ..., "data_fingerprint": ...,
//               "trained": ..., "recipe": {...}}, ...]
//
// Not here: reading the tensors (train/checkpoint/checkpoint.h). Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "dist/world.h"
#include "train/data/dataset.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"
#include "train/step/trainer.h"

namespace vfm::train {

/// What a next stage takes over: the same on all ranks.
struct EarlierRun {
  std::string checkpoint;
  HeldJson train;          ///< its train.json
  HeldJson stages;         ///< as the next stage keeps them
  bool same_data = false;  ///< whether it was trained on those that the next stage begins with
};
/// The checkpoint that options.earlier means, whose files the ranks have verified; the next stage
/// is on `data`. Throws Error if it is damaged, or was removed meanwhile. A collective.
EarlierRun find_earlier(dist::World& world, const RunOptions& options, const Dataset& data);

/// What a next stage begins with: the model, the facts and the recipe of options.earlier; or, where
/// options.out has checkpoints and goes on at them, what these say: options.earlier may be gone
/// then. Throws Error{usage}, also where options.out is that run itself.
Beginning read_stage(const RunOptions& options);

/// Throws Error{usage} unless the run of `train`, options.out's train.json, continues
/// options.earlier, wherever that is now; or neither of them is of a stage that continues another.
void check_continues_earlier(const Json& train, const RunOptions& options);

/// The stages before the run of `train`, its train.json, oldest first; none: an empty list.
Json earlier_stages(const Json& train);
/// The same, and last the run itself up to there, which has no "checkpoint".
Json stages_of(const Json& train);
/// The first step of the stage after these: the steps that they made together.
std::int64_t first_step_after(const Json& stages);
/// What the recipe of a stage changes of that of the one before it, both as to_json() has them, as
/// "key: old -> new".
std::vector<std::string> recipe_changes(const Json& earlier, const Json& later);

/// Where the next stage of a run goes on, and how it makes packs, which is set in `recipe`: with
/// the same data at the run's place, with the run's way to make packs; other packs of them (other
/// 'data.tokens') begin where as many samples of the block have been seen. With other data at their
/// beginning.
DataPosition place_after(const EarlierRun& earlier, const RunOptions& options, const Dataset& data,
                         const Recipe& recipe);
/// Throws Error{usage} if there are no numbers for so many steps after step `first`.
void check_last_step(std::int64_t first, const Recipe& recipe);

}  // namespace vfm::train

// Training in stages: a run that continues an earlier one (vfm-train --continue). A stage of a
// pipeline is something else.
//
// The next stage has a folder of its own. From the earlier run's checkpoint it takes weights,
// moments, average, counters, and the scale of latents. It also takes the recipe, and may change
// what Field::stage_may_change (train/recipe/recipe_field.h) allows. Steps, samples and tokens
// count on from the earlier run. The learning-rate schedule and 'train.steps' are the stage's own.
// train.json lists the earlier stages, each with its recipe:
//
//   "stages": [{"checkpoint": path, "complete": hash of its COMPLETE, "first_step": 0,
//               "last_step": 500, "samples": ..., "tokens": ..., "data_fingerprint": ...,
//               "trained": ..., "recipe": {...}}, ...]
//
// Tensors are read in train/checkpoint/checkpoint.h. Thread-safety: free functions.
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

/// The earlier run as its next stage sees it; the same on all ranks.
struct EarlierRun {
  std::string checkpoint;
  HeldJson train;          ///< train.json of the checkpoint
  HeldJson stages;         ///< the list of stages for the train.json of the next one
  bool same_data = false;  ///< the next stage begins with the data of the earlier run
};
/// Finds the checkpoint that options.earlier means; the ranks verify its files. `data` are those of
/// the next stage. Throws Error if the checkpoint is damaged, or was removed meanwhile. A
/// collective.
EarlierRun find_earlier(dist::World& world, const RunOptions& options, const Dataset& data);

/// Reads what a next stage begins with: the model, facts and recipe of options.earlier. If
/// options.out has checkpoints and continues at them, these are read instead, and options.earlier
/// may be gone. Throws Error{usage}, also if options.out is the earlier run itself.
Beginning read_stage(const RunOptions& options);

/// Checks that the run options.out, whose train.json is `train`, continues options.earlier, even if
/// the earlier run has moved. Without options.earlier it must continue none. Throws Error{usage}.
void check_continues_earlier(const Json& train, const RunOptions& options);

/// The stages before the run with this train.json, oldest first; an empty list if there are none.
Json earlier_stages(const Json& train);
/// The same stages, and at the end the run itself, without "checkpoint".
Json stages_of(const Json& train);
/// The first step after these stages, which is the number of steps that they made together.
std::int64_t first_step_after(const Json& stages);
/// The changes of a stage's recipe to the recipe before, both from to_json(), as "key: old -> new".
std::vector<std::string> recipe_changes(const Json& earlier, const Json& later);

/// The position in the data at which the next stage begins. With the same data and packs it is the
/// earlier run's position. With the same data in other packs (another 'data.tokens') it is after
/// the same number of samples of the block. With other data it is their beginning.
DataPosition place_after(const EarlierRun& earlier, const RunOptions& options, const Dataset& data,
                         const Recipe& recipe);
/// Throws Error{usage} if the steps of `recipe` after step `first` exceed the largest step number.
void check_last_step(std::int64_t first, const Recipe& recipe);

}  // namespace vfm::train

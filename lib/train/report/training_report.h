// The page about a training run (vfm-train --report): what was trained, its curves, and for a
// tokenizer reconstructions of validation clips. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "train/run.h"
#include "train/step/trainer.h"
#include "train/step/validation.h"

namespace vfm::train {

/// Writes options.report, whole or not at all. `recipe` is fitted to the data. `stages` are the
/// stages before this run (train/state/next_stage.h); the page lists them. For a tokenizer some
/// clips of `validation` pass through the averaged weights; `validation` is null if the run has
/// none.
void write_training_report(const RunOptions& options, const Recipe& recipe, const Json& stages,
                           Trainer& trainer, Validation* validation);

}  // namespace vfm::train

// Beginning a run from an existing model (vfm-train --init), and resuming a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "nn/parameter.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"

namespace vfm::train {

class Dataset;

/// What the model options.init says, a folder as models/folder/model_folder.h takes it; or, where
/// the run options.out has checkpoints and goes on at them (not `force`), the newest of these:
/// `init` is then not looked at here, and may be gone, but for the weights under adapters. Of a run
/// of adapters it is these, if options.go_on_adapters, and the model under them. A checkpoint of
/// ours says what its train.json does; a diffusion transformer of somebody else is taken to be
/// trained as Cosmos-1.0 was: texts filled up to 512 tokens, and, video to world, 0 to 2 latent
/// frames given. Of a pipeline it is `part` (Kind::pipeline_part). With options.earlier what
/// read_stage() says (train/state/next_stage.h). Throws Error{usage}, also for a pipeline of flow
/// matching, which training here is not.
Beginning read_beginning(const RunOptions& options, std::string_view part);

/// Compares the tensors that the run would read from options.init with that model's configuration,
/// by the headers of its files alone. A run that goes on with weights of its own reads none. Throws
/// Error{usage} listing those that do not fit, and for files that are cut off.
void check_initial(const RunOptions& options);

/// Throws Error{usage}, saying what differs, unless `train`, the train.json of the run options.out,
/// is of this recipe, fitted to the data, of data of this fingerprint, and began from options.init:
/// from that folder, a checkpoint of that run, or the same model, which has moved; or is a stage
/// that continues options.earlier (train/state/next_stage.h).
void check_continues(const Json& train, const RunOptions& options, const Recipe& recipe,
                     const std::string& data_fingerprint);

/// Throws Error{usage} unless `run`, whose train.json is `train`, makes packs as this version does:
/// a place in the data is a place in these.
void check_packing(const Json& train, const std::string& run);

/// Says what model a new run begins from, and which parts of it differ from those of the data.
void say_begins(const RunOptions& options, const Recipe& recipe, const Dataset& data);
/// Says after which step the run of that train.json goes on, up to `last`, and what moves the end
/// of its schedule; or that it is longer already.
void say_goes_on(const Json& train, const Recipe& recipe, const std::string& checkpoint,
                 std::int64_t last);
/// Says that an earlier run in `out` left nothing to go on from, if there was one.
void say_begins_again(const RunOptions& options);
/// Of a run that a signal ends after `step`: where the same command goes on. `newest`: checkpoint.
void say_stopped(const RunOptions& options, std::int64_t step, std::int64_t last,
                 const std::string& newest);

/// What a run refuses before it begins, and its dry run with the same words, beside its layout
/// (train/step/parallel.h): check_initial(), and a folder with files of others. Warns of a run that
/// ends in its warm-up.
void check_run(const RunOptions& options, const Recipe& recipe);

/// Reads the weights of options.init into `weights`; and, where adapters go on, these, averaged if
/// they have an average, into `adapters`. Rank 0 finds the files and verifies them, then each rank
/// reads what it holds. Returns what the run remembers of them; on rank 0. Throws Error{usage}
/// listing the tensors that do not fit. A collective.
models::Origin load_initial(dist::World& world, const RunOptions& options,
                            const nn::ParameterList& weights, const nn::ParameterList& adapters);

/// The same for the weights under adapters when their run goes on: `known` is what it remembers. Of
/// a run that has trained on since, the checkpoint that the adapters were begun from is taken.
/// Throws Error{usage} for another model than that, before anything is read. A collective.
models::Origin load_base(dist::World& world, const RunOptions& options, const models::Origin& known,
                         const nn::ParameterList& weights);

}  // namespace vfm::train

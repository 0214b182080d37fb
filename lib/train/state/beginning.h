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

/// Reads what a run begins with from the model options.init (models/folder/model_folder.h). If the
/// run options.out has checkpoints and continues at them (without `force`), its newest checkpoint
/// is read instead; then `init` may be gone, except for the weights under adapters. If `init` is a
/// run of adapters and options.go_on_adapters is set, these adapters and their base model are read.
///
/// A checkpoint of vfm-train says in its train.json how it was trained. A diffusion transformer of
/// other origin is taken to be trained as Cosmos-1.0: texts padded to 512 tokens, and for
/// video-to-world 0 to 2 given latent frames. If `init` is a Diffusers pipeline, its `part` is read
/// (Kind::pipeline_part). With options.earlier the result is that of read_stage()
/// (train/state/next_stage.h). Only one rank need open the files of weights (`opens_weights`), to
/// refuse a model without any. Throws Error{usage}.
Beginning read_beginning(const RunOptions& options, std::string_view part,
                         bool opens_weights = true);

/// Checks the tensors that the run would read from options.init against that model's configuration,
/// by the headers of its files. A run that resumes with weights of its own reads none. Throws
/// Error{usage} listing the tensors that do not fit, and for truncated files.
void check_initial(const RunOptions& options);

/// Checks that the run options.out, whose train.json is `train`, can be resumed: with this recipe,
/// fitted to the data, and data of this fingerprint. It must have begun from options.init: from
/// that folder, from a checkpoint of that run, or from the same model at another place. Or it must
/// be a stage that continues options.earlier (train/state/next_stage.h). Throws Error{usage} saying
/// what differs.
void check_continues(const Json& train, const RunOptions& options, const Recipe& recipe,
                     const std::string& data_fingerprint);

/// Throws Error{usage} unless the run `run`, whose train.json is `train`, makes packs as this
/// version does. A position in the data is a position among these packs.
void check_packing(const Json& train, const std::string& run);

/// Logs from which model a new run begins, and which of its parts differ from those of the data.
void say_begins(const RunOptions& options, const Recipe& recipe, const Dataset& data);
/// Logs after which step the run of this train.json continues, up to `last`, and if the end of its
/// schedule moved; or that it is past `last` already.
void say_goes_on(const Json& train, const Recipe& recipe, const std::string& checkpoint,
                 std::int64_t last);
/// Logs that an earlier run in `out` left nothing to resume, if there was one.
void say_begins_again(const RunOptions& options);
/// Logs that a signal ends the run after `step`, and where the same command would resume it: at
/// `newest`, its newest checkpoint, or "".
void say_stopped(const RunOptions& options, std::int64_t step, std::int64_t last,
                 const std::string& newest);

/// Checks before a run begins; a dry run makes them with the same words. They are check_initial(),
/// and that the folder has no files of other programs. The layout is checked elsewhere
/// (train/step/parallel.h). Warns if the run ends in its warm-up.
void check_run(const RunOptions& options, const Recipe& recipe);

/// Reads the weights of options.init into `weights`. If its adapters are to be trained further,
/// they are read into `adapters`: their average if there is one. Rank 0 finds the files, some ranks
/// open them, and each byte is read by one rank for all. Returns on rank 0 the origin that the run
/// remembers. Throws Error{usage} listing the tensors that do not fit. A collective.
models::Origin load_initial(dist::World& world, const RunOptions& options,
                            const nn::ParameterList& weights, const nn::ParameterList& adapters);

/// Reads the base model's weights when a run of adapters resumes. `known` is the origin that the
/// run remembers. If the base model is a run that has trained on, reads the checkpoint from which
/// the adapters began. Throws Error{usage} if the model has changed, before anything is read. A
/// collective.
models::Origin load_base(dist::World& world, const RunOptions& options, const models::Origin& known,
                         const nn::ParameterList& weights);

}  // namespace vfm::train

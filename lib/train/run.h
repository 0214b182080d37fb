// A training run from beginning to end: folder, resume, the loop, logs, checkpoints.
//
//   RUN/recipe.yaml                     the effective recipe
//   RUN/metrics.jsonl, timing.jsonl     train/report/metrics.h
//   RUN/events.out.tfevents.*           train/report/tensorboard.h
//   RUN/checkpoints/step-*              train/checkpoint/checkpoint.h
//   RUN/errors.jsonl                    samples that could not be read, if any
//   RUN/stop                            asks it to save and end (train/stop_file.h)
//   RUN/flight/                         last collectives of a run that died (dist/why.h)
// Thread-safety: one thread; every rank of the world calls run().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "dist/world.h"
#include "io/manifest.h"
#include "models/folder/model_facts.h"
#include "models/predict.h"
#include "tensor/tensor.h"
#include "train/data/synthetic.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// Models that encode clips while training, as the user names them (train/encoded/encoders.h).
struct EncoderNames {
  std::string tokenizer;  ///< video tokenizer; "": `data` are latents
  std::string text;       ///< encoder of captions without an embedding, or ""
  std::string scale;      ///< file with mean and deviation of latents, or ""
};

struct RunOptions {
  Recipe recipe;  ///< not yet fitted to the data
  /// Folder of latents (data/latents.h). With encoders, or to train a tokenizer, a dataset of
  /// clips.
  std::string data;
  /// All folders of a blend (train/data/blend.h); `data` is the first. Empty without a blend.
  std::vector<std::string> blend;
  EncoderNames encoders;
  /// Sizes of made-up latents or clips to use instead of `data`; then no checkpoint is written.
  SampleSizes synthetic;
  Device device = Device::cpu;
  std::string init;  ///< folder of the model to begin from (models/folder/model_folder.h), or ""
  /// If `init` is a run of adapters: whether training continues them on their base model. Otherwise
  /// they are merged into that model.
  bool go_on_adapters = false;
  std::string init_under;  ///< where the base model of such a run is now; "": where it was
  /// The run, or one of its checkpoints, that this run continues as its next stage, or ""
  /// (train/state/next_stage.h). Not with `init`.
  std::string earlier;
  models::ModelFacts base;  ///< facts of the model in `init` or `earlier`, from read_beginning()
  std::string out;          ///< RUN; created if it does not exist
  /// File of keys of samples to leave out (train/data/skipped_samples.h). "": a run that goes on
  /// leaves out what it left out before.
  std::string skip_samples;
  bool force = false;       ///< forget what is in RUN and start over
  int threads = 0;          ///< threads of this rank; 0: as OpenMP decides
  int local_ranks = 1;      ///< for training_cost(): ranks on this machine, which share its memory
  /// For training_cost() with Device::cuda: the GPU to predict for, or null.
  const models::Gpu* gpu = nullptr;
  std::string report;  ///< file for a page about the run (train/report/training_report.h), or ""
};

/// Trains up to recipe.train.steps, from the beginning or from RUN's newest good checkpoint. Rank 0
/// writes one manifest record a checkpoint when the checkpoint is durable. A run that is already at
/// its end writes the record of its last checkpoint. After SIGUSR1 (base/stop.h), or when RUN/stop
/// is there, it saves at the end of the step and returns. After SIGTERM it saves and throws
/// Stopped. Returns the number of samples that could not be read. Throws Error{usage} if recipe,
/// data and what is in RUN do not fit, and Stopped after another signal to stop.
long run(const RunOptions& options, dist::World& world, io::ManifestWriter& manifest,
         Progress& progress);

/// The cost of such a run with the keys of vfm-train-cost(1): parameters, tokens and FLOPs a step,
/// memory. Builds and writes nothing. Needs options.recipe, `data` or `synthetic`, and `device`.
/// Without data the recipe must set the fields that data would, and one sample is taken to fill a
/// pack. With `gpu` the result has the time of a step on it, if all packs are like the fullest.
/// Reads the headers of the model to begin from; throws Error{usage} listing the tensors that do
/// not fit.
Json training_cost(const RunOptions& options, int ranks);
/// The same in words, in lines "name   value".
std::string training_words(const Json& cost);

}  // namespace vfm::train

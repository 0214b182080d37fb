// A training run from beginning to end: folder, resume, the loop, logs, checkpoints.
//
//   RUN/recipe.yaml                     the effective recipe
//   RUN/metrics.jsonl, timing.jsonl     train/report/metrics.h
//   RUN/events.out.tfevents.*           train/report/tensorboard.h
//   RUN/checkpoints/step-*              train/checkpoint/checkpoint.h
//   RUN/errors.jsonl                    samples that could not be read, if any
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

/// What encodes clips while training, as the user names them (train/encoded/encoders.h).
struct EncoderNames {
  std::string tokenizer;  ///< or "": `data` are latents
  std::string text;       ///< of captions without an embedding, or ""
  std::string scale;      ///< a file with mean and deviation of latents, or ""
};

struct RunOptions {
  Recipe recipe;  ///< not yet fitted to the data
  /// Folder of latents (data/latents.h); with encoders, and for a tokenizer, a dataset of clips.
  std::string data;
  std::vector<std::string>
      blend;  ///< of several such folders all (train/data/blend.h); data: the first
  EncoderNames encoders;
  /// Made-up latents, or clips, of these sizes instead of `data`; then no checkpoint is written.
  SampleSizes synthetic;
  Device device = Device::cpu;
  std::string init;  ///< folder of the model to begin from (models/folder/model_folder.h), or ""
  /// Of `init` that is a run of adapters: these go on, on the model that they are of; else they are
  /// merged into it.
  bool go_on_adapters = false;
  std::string init_under;  ///< of such a run: where that model is now; "": where it was
  /// The run, or a checkpoint of it, that this one continues as its next stage, or "" (train/
  /// next_stage.h). Not with `init`.
  std::string earlier;
  models::ModelFacts base;  ///< what `init` or `earlier` says, of read_beginning()
  std::string out;          ///< RUN; made if need be
  bool force = false;       ///< forget what is in RUN and start over
  int threads = 0;          ///< of this rank; 0: as OpenMP decides
  int local_ranks = 1;      ///< on this machine, whose memory they share: for training_cost()
  /// For training_cost(): the GPU to predict for, with Device::cuda; or null.
  const models::Gpu* gpu = nullptr;
  std::string report;  ///< file for a page about the run (train/report/training_report.h), or ""
};

/// Trains, or continues where RUN's newest good checkpoint ends, up to recipe.train.steps. Rank 0
/// writes one manifest record a checkpoint, when it is durable; a run that is already at its end
/// writes that of its last one. After SIGUSR1 (base/stop.h) it saves at the end of the step and
/// returns. Returns the number of samples that could not be read. Throws Error{usage} if recipe,
/// data and what is in RUN do not fit; Stopped after a signal to stop.
long run(const RunOptions& options, dist::World& world, io::ManifestWriter& manifest,
         Progress& progress);

/// What such a run would cost, with the keys of vfm-train-cost(1): parameters, tokens and
/// FLOPs a step, memory. Nothing is built or written. Of the options it wants recipe, data or
/// synthetic, and device. Without data the recipe must say what the data would, and one sample
/// is taken to fill a pack. With `gpu` also the time that a step would take there, if its packs
/// were all like the fullest. The headers of the model to begin from are read, and compared: throws
/// Error{usage} listing the tensors that do not fit.
Json training_cost(const RunOptions& options, int ranks);
/// The same in words, lines "name   value".
std::string training_words(const Json& cost);

}  // namespace vfm::train

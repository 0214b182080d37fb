// What a run trains, and by which loss: a model, how samples become batches, and batches a loss.
//
// The step and the loop (train/step/trainer.h, train/run.h) know no more of a model than this. Each
// kind of training (train/kind.h) has one: train/diffusion/objective.h, train/codes/objective.h,
// train/tokenizer/objective.h.
// Thread-safety: build() and what is const from any thread, also while another one passes a batch;
// passing batches from one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "data/latents.h"
#include "nn/parameter.h"
#include "ops/tape.h"
#include "train/data/sample.h"
#include "train/recipe/recipe.h"
#include "train/step/loss_sums.h"

namespace vfm::train {

/// Samples that are ready for a model, as its objective laid them out: it alone knows what is in
/// its batches. When one has passed, its loss is in it too.
struct Batch {
  virtual ~Batch() = default;
};

/// What random numbers of a sample in a step are drawn by: its key, and how often it came in the
/// step before.
inline std::string random_name(const std::string& key, std::uint32_t again) {
  return again == 0 ? key : key + "#" + std::to_string(again);
}

/// A sample, and its place in the order of the whole step, which is the same on any number of
/// ranks.
struct PlacedSample {
  CleanSample sample;
  std::size_t place = 0;
  std::uint32_t again = 0;  ///< how often it came in the step before, where that makes a difference
};

/// A batch on its way through a rank's chunks of a pipeline (models/dit/network_layout.h), each of
/// which goes forward and then back, once.
class ChunkedPass {
 public:
  virtual ~ChunkedPass() = default;
  /// The residual stream of this rank's tokens, without values.
  virtual Tensor blank_stream() const = 0;
  /// What the rank's chunk makes of `stream`. The first one of the network needs none; the last one
  /// gives none: its loss is in the batch.
  virtual Tensor forward(int chunk, Tensor stream) = 0;
  /// The gradient for backward() is on its way.
  virtual void expect_backward(int chunk) = 0;
  /// Adds the gradient of the *sum* of the loss to the parameters' gradients, given that of what
  /// forward() gave, and gives that of what it got. Of the ends as there.
  virtual Tensor backward(int chunk, const Tensor& gradient) = 0;
};

class Objective {
 public:
  virtual ~Objective() = default;

  /// What is trained.
  virtual const nn::ParameterList& parameters() const = 0;
  /// The weights under adapters (recipe.lora): without gradients, and in no checkpoint. A run reads
  /// them from the model that it begins from. Empty if there are none.
  virtual const nn::ParameterList& frozen() const;
  virtual Device device() const = 0;
  /// The model's config.json.
  virtual Json config() const = 0;

  /// Some samples of step `step`, which has `of_step`, as one batch. What is random is a pure
  /// function of the recipe's seed, the step, random_name() and place, and of how many the step
  /// has.
  virtual std::unique_ptr<Batch> build(std::uint32_t step, std::size_t of_step,
                                       const std::vector<PlacedSample>& samples) const = 0;
  /// Forward, loss and backward, which adds the gradient of the *sum* of the loss to the
  /// parameters' gradients; that of the `first` batch of a step takes the place of what is there.
  /// Once a batch, one that build() made. On a GPU it is queued. `final` is told of gradients while
  /// backward still runs, each when it gets nothing more in this batch; where work is repeated as
  /// it was recorded, of none.
  virtual void pass(Batch& batch, bool first, const ops::Tape::Listener& final = {}) const = 0;
  /// The same chunk by chunk, in a pipeline: of a rank's last microbatch of a step with `final`.
  /// The batch must outlive it. Throws Error where the kind has no stages.
  virtual std::unique_ptr<ChunkedPass> pass_in_chunks(Batch& batch,
                                                      const ops::Tape::Listener& final = {}) const;
  /// A batch of samples of these sizes (Dataset::sizes()) and no values, which passes on
  /// Device::meta as if it were one of build().
  virtual std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const = 0;
  /// The loss of a batch that has passed. On a GPU it waits for the batch, so call it after what
  /// follows is queued.
  virtual LossSums loss(const Batch& batch) const = 0;

  /// The noise levels at which a validation measures each sample; a nameless one where there is no
  /// noise.
  virtual std::vector<std::string> levels() const = 0;
  /// The loss of samples under condition `level`, without gradients and with fixed random numbers.
  virtual LossSums validate(std::size_t level, const std::vector<CleanSample>& samples) const = 0;
  /// Whether reconstruct() gives something: that of a tokenizer does.
  virtual bool reconstructs() const { return false; }
  /// The reconstructed pixels of a sample, laid out as its own.
  virtual std::vector<float> reconstruct(const CleanSample& sample) const;
};

/// Whether the sample is trained without its text in this step; `rate` is how often.
bool drop_text(double rate, std::uint64_t seed, std::uint32_t step, const std::string& key);

}  // namespace vfm::train

// The interface of what a run trains: a model, how samples become batches, and batches a loss.
//
// The step and the loop (train/step/trainer.h, train/run.h) know a model only by this interface.
// Each kind of training (train/kind.h) implements it: train/diffusion/objective.h,
// train/codes/objective.h, train/tokenizer/objective.h.
//
// Thread-safety: build() and const members from any thread, even while another thread passes a
// batch. One thread at a time passes batches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "data/latents.h"
#include "nn/block_shards.h"
#include "nn/parameter.h"
#include "nn/staged_forward.h"
#include "ops/tape.h"
#include "train/data/sample.h"
#include "train/recipe/recipe.h"
#include "train/step/loss_sums.h"

namespace vfm::train {

/// Samples in the form that an objective prepared; only the objective knows the contents. After a
/// pass the batch has its loss, too.
struct Batch {
  virtual ~Batch() = default;
};

/// The name by which random numbers of a sample in a step are drawn: its key, and how often it came
/// before in the step.
inline std::string random_name(const std::string& key, std::uint32_t again) {
  return again == 0 ? key : key + "#" + std::to_string(again);
}

/// A sample, and its place in the order of the whole step, which is the same on any number of
/// ranks.
struct PlacedSample {
  CleanSample sample;
  std::size_t place = 0;
  std::uint32_t again = 0;  ///< how often it came before in the step (Dataset::tells_repeats())
};

/// The pass of a batch through a rank's chunks of a pipeline (nn/network_layout.h). Each
/// chunk goes forward and then backward, once.
class ChunkedPass {
 public:
  virtual ~ChunkedPass() = default;
  /// The tensors that go into a chunk, or that come out of it, without values.
  enum class Side { input, output };
  virtual nn::Streams blank(int chunk, Side side) const = 0;
  /// Returns the output of the rank's chunk for `streams`. The network's first chunk needs no
  /// `streams`; its last chunk returns none, and its loss is in the batch.
  virtual nn::Streams forward(int chunk, nn::Streams streams) = 0;
  /// Says that the gradients for backward() are about to arrive.
  virtual void expect_backward(int chunk) = 0;
  /// Adds the gradient of the *sum* of the loss to the parameters' gradients. Takes the gradients
  /// of the chunk's output and returns those of its input; the network's last chunk takes none, and
  /// its first chunk returns none.
  virtual nn::Streams backward(int chunk, nn::Streams gradients) = 0;
};

/// A network of an objective that is trained beside its first one, such as what judges it.
struct OtherNetwork {
  std::string name;  ///< a word; of its folder in a checkpoint
  const nn::ParameterList* parameters = nullptr;
  /// Steps from one update to the next. An update uses the gradients of its own step alone.
  int every = 1;
  /// Its optimizer; nothing: the recipe's.
  std::optional<OptimizerRecipe> optimizer = {};
  /// Gathers its blocks, made by another() of the layout's; null: each rank has all of them.
  nn::BlockShards* blocks = nullptr;
};

class Objective {
 public:
  virtual ~Objective() = default;

  /// The parameters of the first network that are trained.
  virtual const nn::ParameterList& parameters() const = 0;
  /// OtherNetwork::every of the first network.
  virtual int every() const { return 1; }
  /// The other networks that are trained. A network that is frozen is not told of: it has neither
  /// gradients nor state, and is in no checkpoint.
  virtual std::vector<OtherNetwork> others() const { return {}; }
  /// With 'parallel.shard' full: the passes of all networks that gather their blocks, trained or
  /// frozen, in the order in which pass() makes them. Each network goes back at most once. A rank
  /// without a batch takes part in them. Nothing: the first network alone goes forward and back.
  /// validate() passes through the first network alone.
  virtual std::vector<nn::BlockPass> passes() const { return {}; }
  /// The weights under adapters (recipe.lora), without gradients and in no checkpoint. A run reads
  /// them from the model that it begins from. Empty if the run has no adapters.
  virtual const nn::ParameterList& frozen() const;
  virtual Device device() const = 0;
  /// The model's config.json.
  virtual Json config() const = 0;

  /// Makes a batch of some samples of step `step`, which has `of_step` samples. Random numbers are
  /// a pure function of the recipe's seed, `step`, `of_step`, and each sample's random_name() and
  /// place.
  virtual std::unique_ptr<Batch> build(std::uint32_t step, std::size_t of_step,
                                       const std::vector<PlacedSample>& samples) const = 0;
  /// Runs forward, loss and backward on a batch of build(), once. Backward adds the gradient of the
  /// *sum* of the loss to the parameters' gradients; that of the `first` batch of a step replaces
  /// them. On a GPU the work is queued. `final` is called during backward for each gradient that is
  /// complete in this batch; it is not called when recorded work is repeated.
  virtual void pass(Batch& batch, bool first, const ops::Tape::Listener& final = {}) const = 0;
  /// The same chunk by chunk, in a pipeline; `final` is for a rank's last microbatch of a step. The
  /// batch must outlive the result. Several networks pass together: what a chunk hands on is of all
  /// of them, so none can begin with what another ends with. Throws Error if this kind has no
  /// stages.
  virtual std::unique_ptr<ChunkedPass> pass_in_chunks(Batch& batch,
                                                      const ops::Tape::Listener& final = {}) const;
  /// A batch of samples of these sizes (Dataset::sizes()) without values. It passes on Device::meta
  /// as a batch of build() does.
  virtual std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const = 0;
  /// The loss of a batch that has passed. On a GPU it waits for the batch, so queue what follows
  /// before the call.
  virtual LossSums loss(const Batch& batch) const = 0;

  /// Names of the noise levels at which a validation measures each sample. Without noise it is one
  /// empty name.
  virtual std::vector<std::string> levels() const = 0;
  /// The loss of samples at `level`, without gradients and with fixed random numbers.
  virtual LossSums validate(std::size_t level, const std::vector<CleanSample>& samples) const = 0;
  /// True if reconstruct() is possible, as for a tokenizer.
  virtual bool reconstructs() const { return false; }
  /// The reconstructed pixels of a sample, laid out as sample.pixels.
  virtual std::vector<float> reconstruct(const CleanSample& sample) const;
};

/// True if the sample is trained without its text in this step; `rate` is the probability.
bool drop_text(double rate, std::uint64_t seed, std::uint32_t step, const std::string& key);

}  // namespace vfm::train

// What a run takes of its device's memory, what it computes, and what backward recomputes
// so that it fits. Found by a step on Device::meta (tensor/meta.h): the run's own model, optimizer
// and pass, of which nothing is computed. Not in it: what only a library can say that it needs,
// which on a GPU is the driver and cuDNN's plans.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "models/dit/network.h"
#include "train/data/dataset.h"
#include "train/recipe/recipe.h"
#include "train/step/objective.h"

namespace vfm::train {

/// More samples than this say nothing new about packs.
constexpr std::size_t kLookedAt = 65536;

/// Of the packs of the first epoch that the recipe makes of the data the one of most tokens, and of
/// these that of the longest texts; where samples pass one by one (Kind::one_by_one) that of the
/// largest sample, and of these the one of most bytes. Of the first packs, if there are many.
std::vector<data::Entry> fullest_pack(const Recipe& recipe, const Dataset& data);

/// Bytes on one rank's device.
struct MemoryNeed {
  double weights = 0;    ///< f32, or split masters: as much; bf16 under adapters of a bf16 model
  double gradients = 0;  ///< f32
  double moments = 0;    ///< both
  double average = 0;    ///< 0 if there is none, or the host keeps it
  /// Of batches, of the packs that go through the network together, of blocks that are gathered
  /// and the buffers of their gradients, and what the allocator's blocks are larger than what is in
  /// them.
  double activations = 0;
  double host = 0;    ///< 0 on a GPU: the program, samples on their way, what is kept
  double mpi = 0;     ///< of `host`: what MPI has for itself, which a dry run does not begin
  double pinned = 0;  ///< of the host's memory beside a GPU, and so not in total(): 'model.offload'
  /// The most beside steps, all told: while the weights get their first values, while a checkpoint
  /// is read, and while one is saved between two steps.
  double construction = 0, load = 0, save = 0;

  /// The most in a step.
  double total() const { return weights + gradients + moments + average + activations + host; }
};

/// Numbers of the recipe's model, and of them those that are trained: all, or its adapters', which
/// are not in `all`.
struct ModelNumbers {
  std::int64_t all = 0, trained = 0;
};
ModelNumbers model_numbers(const Recipe& recipe);

/// A rank's packs of a step, and how many go through the network together.
struct RankPacks {
  int all = 1, together = 1;
  int passes() const { return (all + together - 1) / together; }
};
RankPacks packs_of_rank(const Recipe& recipe, int ranks);

/// The average as far as `device` keeps it: off, where the host does.
EmaRecipe average_on_device(const EmaRecipe& ema, Device device);

/// Floating point operations of samples, forward and backward, without what recompute adds.
/// Thread-safety: one thread at a time.
class SampleFlops {
 public:
  /// Keeps the reference. `recipe` is fitted to the data (Dataset::fit).
  explicit SampleFlops(const Recipe& recipe);
  double of(const data::Entry& sample);

 private:
  double pass(data::Entry sample, int text_tokens) const;

  const Recipe& recipe_;
  std::unique_ptr<Objective> objective_;
  struct OfText {
    double none = 0, each = 0;  ///< linear in the tokens of the text
  };
  std::map<std::tuple<int, int, int>, OfText> known_;  ///< by frames, height and width
};

/// `recipe` knows its channels (Dataset::fit). Each of a rank's packs of a step is taken to be as
/// `pack`; without one only what lasts from step to step is counted.
/// Of the stage of a pipeline that needs most.
MemoryNeed memory_need(const Recipe& recipe, int ranks, models::Recompute recompute, Device device,
                       const std::vector<data::Entry>& pack);
/// The same of one rank, and of each stage's fullest. With `passes` alone what the gradients of
/// whole weights take on their way is left out, and weights that are gathered after an update.
enum class CountedParts { all, passes };
MemoryNeed memory_of_rank(const Recipe& recipe, int rank, int ranks, models::Recompute recompute,
                          Device device, const std::vector<data::Entry>& pack,
                          CountedParts parts = CountedParts::all);
std::vector<MemoryNeed> memory_of_stages(const Recipe& recipe, int ranks,
                                         models::Recompute recompute, Device device,
                                         const std::vector<data::Entry>& pack);

/// Throws Error{usage}, saying what would make it less, if what lasts from step to step, which is
/// all but the activations and the host's, is more than `usable` bytes: such a run cannot begin.
void check_memory(const Recipe& recipe, int ranks, Device device, const MemoryNeed& need,
                  double usable);

/// Throws Error{usage} for 'model.offload' on a CPU.
void check_offload(const Recipe& recipe, Device device);

/// Throws Error{usage} if the host has not so much pinned memory for each of its `local_ranks`.
void check_pinned(const MemoryNeed& need, int local_ranks);

/// What a rank may use: 95 % of a GPU's memory less 2 GiB for the driver and cuDNN's plans; of this
/// machine's, or of what the control group of this process may use of it, its share of four fifths
/// among `local_ranks`, those on this machine.
double usable_memory(Device device, int local_ranks);
/// What of that the model of a run on these ranks has, which is less by what reading the data takes
/// (Dataset::device_bytes()), and by communicators (train/step/parallel.h). Throws Error{usage} for
/// a layout that the ranks cannot have.
double memory_beside(const Recipe& recipe, const Dataset& data, Device device,
                     const dist::World& world);

/// What the recipe says; for "auto" the least recomputation whose need is within `usable` bytes, or
/// that of blocks if none is.
models::Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable,
                                   const std::vector<data::Entry>& pack);

/// Logs what recomputation was chosen for `need`, or that even so it is more than `usable`.
void log_memory(const Recipe& recipe, int ranks, const MemoryNeed& need,
                models::Recompute recompute, Device device, double usable);

/// Logs what 'model.offload' does with this recomputation, if it is set.
void log_offload(const Recipe& recipe, const MemoryNeed& need, models::Recompute recompute);

}  // namespace vfm::train

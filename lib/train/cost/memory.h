// The memory of its device that a run needs, the operations that it computes, and the recomputation
// that makes it fit. Found by a step on Device::meta (tensor/meta.h): the run's own model,
// optimizer and pass, without computing. Memory that only a library knows of is not included; on a
// GPU that is the driver and cuDNN's plans. Thread-safety: free functions, any thread.
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

/// Number of samples that are looked at to find out about packs; more say nothing new.
constexpr std::size_t kLookedAt = 65536;

/// The fullest pack that the recipe makes of the data in the first epoch: the one with the most
/// tokens, and of equals the one with the most text tokens. If samples pass one by one
/// (Kind::one_by_one), it is the pack with the largest sample, and of equals the one with the most
/// bytes. It looks at kLookedAt samples at most.
std::vector<data::Entry> fullest_pack(const Recipe& recipe, const Dataset& data);

/// Bytes on one rank's device.
struct MemoryNeed {
  double weights = 0;  ///< f32 or split masters, of equal size; bf16 under adapters of a bf16 model
  double gradients = 0;  ///< f32
  double moments = 0;    ///< what the optimizer keeps (train/state/optimizer_kinds.h)
  double average = 0;    ///< 0 without an average, or if the host keeps it
  /// Batches, activations of the packs that go through the network together, gathered blocks,
  /// buffers of their gradients, and what the allocator adds by rounding up.
  double activations = 0;
  double host = 0;  ///< on a CPU the program, samples being read, and freed memory kept; 0 on a GPU
  double mpi = 0;   ///< part of `host` that MPI needs for itself; a dry run does not start MPI
  double pinned = 0;  ///< pinned memory of a GPU's host for 'model.offload'; not in total()
  /// The most in all outside of steps: while weights are initialized, while a checkpoint is read,
  /// and while one is saved between two steps.
  double construction = 0, load = 0, save = 0;

  /// The most during a step.
  double total() const { return weights + gradients + moments + average + activations + host; }
};

/// Numbers of weights. `trained` counts those that are trained: all of them, or the adapters, which
/// are not in `all`.
struct ModelNumbers {
  std::int64_t all = 0, trained = 0;
  double state_bytes = 0;  ///< of what the optimizer keeps for all of them
};
ModelNumbers model_numbers(const Recipe& recipe);

/// A rank's packs of a step, and how many of them go through the network together.
struct RankPacks {
  int all = 1, together = 1;
  int passes() const { return (all + together - 1) / together; }
};
RankPacks packs_of_rank(const Recipe& recipe, int ranks);

/// The average as `device` keeps it: "off" if the host keeps it.
EmaRecipe average_on_device(const EmaRecipe& ema, Device device);

/// Floating point operations of samples, forward and backward, without recomputation.
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
    double none = 0, each = 0;  ///< flops without text, and for each text token
  };
  std::map<std::tuple<int, int, int>, OfText> known_;  ///< key: frames, height, width
};

/// The need of the pipeline stage that needs most. `recipe` knows its channels (Dataset::fit). Each
/// of a rank's packs of a step is taken to be like `pack`; if `pack` is empty, only permanent
/// memory is counted.
MemoryNeed memory_need(const Recipe& recipe, int ranks, nn::Recompute recompute, Device device,
                       const std::vector<data::Entry>& pack);
/// The need of one rank, and of the fullest rank of each stage. CountedParts::passes leaves out the
/// buffers for gradients of whole weights, and weights that are gathered after an update.
enum class CountedParts { all, passes };
MemoryNeed memory_of_rank(const Recipe& recipe, int rank, int ranks, nn::Recompute recompute,
                          Device device, const std::vector<data::Entry>& pack,
                          CountedParts parts = CountedParts::all);
std::vector<MemoryNeed> memory_of_stages(const Recipe& recipe, int ranks, nn::Recompute recompute,
                                         Device device, const std::vector<data::Entry>& pack);

/// Bytes of the host's memory for the snapshot of a checkpoint that is being written
/// (train/checkpoint/snapshot_memory.h), on the rank that writes most of it. A second one is beside
/// it in /dev/shm. Not part of MemoryNeed: without room for it the run goes on, more slowly.
double snapshot_bytes(const Recipe& recipe, int ranks);

/// Throws Error{usage}, saying what would need less, if permanent memory (all but activations and
/// `host`) is more than `usable` bytes: such a run cannot begin.
void check_memory(const Recipe& recipe, int ranks, Device device, const MemoryNeed& need,
                  double usable);

/// Throws Error{usage} for 'model.offload' on a CPU.
void check_offload(const Recipe& recipe, Device device);

/// Throws Error{usage} if the host has not enough pinned memory for all of its `local_ranks`.
void check_pinned(const MemoryNeed& need, int local_ranks);

/// The bytes that a rank may use. On a GPU: 95 % of its memory less 2 GiB for the driver and
/// cuDNN's plans. On a CPU: an equal share for each of the `local_ranks` on this machine of four
/// fifths of its memory, or of what this process's control group may use.
double usable_memory(Device device, int local_ranks);
/// What reading the data takes on `device`: Dataset::device_bytes(), and on a CPU fetch_bytes()
/// (train/data/fetch_ahead.h).
double reading_bytes(const Recipe& recipe, const Dataset& data, Device device);
/// The part of usable_memory() that is left for the model of a run: without reading_bytes() and
/// without communicators (train/step/parallel.h). Throws Error{usage} if the ranks cannot have the
/// layout.
double memory_beside(const Recipe& recipe, const Dataset& data, Device device,
                     const dist::World& world);

/// The recipe's recomputation. For "auto" the least one whose need is within `usable` bytes, or
/// Recompute::block if none is.
nn::Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable,
                               const std::vector<data::Entry>& pack);

/// Logs the recomputation that was chosen for `need`, or that the need is above `usable` even so.
void log_memory(const Recipe& recipe, int ranks, const MemoryNeed& need, nn::Recompute recompute,
                Device device, double usable);

/// Logs what 'model.offload' does with this recomputation, if the recipe sets it.
void log_offload(const Recipe& recipe, const MemoryNeed& need, nn::Recompute recompute);

}  // namespace vfm::train

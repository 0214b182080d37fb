// What a run takes of its device's memory, and what backward recomputes so that it fits. Estimates:
// the tensors that are known to be kept, without fragmentation and libraries' own needs.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/dit/network.h"
#include "train/dataset.h"
#include "train/recipe.h"

namespace vfm::train {

/// What a pack carries beside its visual tokens, which a small model feels: the fullest pack's.
struct PackLoad {
  double samples = 1;
  double text_rows = 1;  ///< tokens of their texts
};

/// A rank's packs of a step, and how many of them go through the network together.
struct PackShare {
  int packs = 1, together = 1;
};

/// Bytes that packs take while they go through the network together.
struct PassMemory {
  double activations = 0;  ///< on the device
  double host = 0;         ///< of samples on their way, and what is kept; on the CPU
};

/// Bytes of the texts that the layers of a network attend to: little of a large model, and much of
/// a tiny one. The batches of all packs of a step are made before the first one passes, and those
/// of the next step meanwhile. `keys` is the width of keys and values, `layers` how many have
/// theirs at once.
double text_memory(const Recipe& recipe, const PackShare& share, const PackLoad& load,
                   double text_width, double keys, double layers);

/// Of the packs of the first epoch that the recipe makes of the data; of the first ones, if there
/// are many.
PackLoad pack_load(const Recipe& recipe, const Dataset& data);

/// Bytes on one rank's device.
struct MemoryNeed {
  double weights = 0;      ///< f32, or split masters: as much; bf16 under adapters of a bf16 model
  double gradients = 0;    ///< f32
  double moments = 0;      ///< both
  double average = 0;      ///< 0 if there is none, or the host keeps it
  double activations = 0;  ///< of the packs that go through the network together
  double host = 0;         ///< 0 on a GPU: the program, samples on their way, what is kept

  double total() const { return weights + gradients + moments + average + activations + host; }
};

/// How many numbers are trained: the model's parameters, or those of its adapters.
std::int64_t trained_parameters(const Recipe& recipe);

/// What the recipe's model costs; `tokens` and `text_tokens` are of a sample. The weights under
/// adapters have no gradients; the adapters' own products are not counted.
models::NetworkCost model_cost(const Recipe& recipe, double tokens, double text_tokens,
                               double pack_tokens, models::Recompute recompute);

/// `recipe` knows its channels (Dataset::fit).
MemoryNeed memory_need(const Recipe& recipe, int ranks, models::Recompute recompute, Device device,
                       const PackLoad& load);

/// Throws Error{usage}, saying what would make it less, if what lasts from step to step, which is
/// all but the activations and the host's, is more than `usable` bytes: such a run cannot begin.
void check_memory(const Recipe& recipe, const MemoryNeed& need, double usable);

/// What a rank may use: 95 % of a GPU's memory less 2 GiB for the libraries' workspaces; of this
/// machine's, or of what the control group of this process may use of it, its share of four fifths
/// among `local_ranks`, those on this machine.
double usable_memory(Device device, int local_ranks);

/// What the recipe says; for "auto" the least recomputation whose need is within `usable` bytes, or
/// that of blocks if none is.
models::Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable,
                                   const PackLoad& load);

/// Logs what recomputation was chosen for `need`, or that even so it is more than `usable`.
void log_memory(const MemoryNeed& need, models::Recompute recompute, Device device, double usable);

}  // namespace vfm::train

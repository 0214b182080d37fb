// How the ranks of a run share its work: the recipe's 'parallel' on the ranks that there are.
//
// dp has what tp, cp and pp leave. Which rank has which layers, heads, tokens and samples is said
// in dist/mesh.h and models/dit/network_layout.h. Thread-safety: that of the World, which must
// outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "data/latents.h"
#include "dist/mesh.h"
#include "dist/world.h"
#include "models/dit/network_layout.h"
#include "nn/block_shards.h"
#include "nn/parameter.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

class Dataset;

class Parallel {
 public:
  /// A collective. Throws Error{usage} that names the nearest layout if the recipe's is none of
  /// that many ranks. `of_machine` ranks are on one machine; 0: as many as the world has there.
  Parallel(const Recipe& recipe, dist::World& world, int of_machine = 0);

  dist::World& world() const { return mesh_.world(); }
  const dist::Mesh& mesh() const { return mesh_; }
  /// Of a network, and this rank's part of it.
  const models::NetworkLayout& network() const { return network_; }
  /// Gathers the matrices of that network's blocks; null: each rank has them. One network.
  nn::BlockShards* blocks() const { return blocks_.get(); }
  /// The ranks that share samples, this one among them.
  dist::Group& sharers() const { return mesh_.group(sharing_axes()); }
  /// Those of them that need more of a sample than its sizes and text: of a pipeline the first and
  /// the last stage. Null: this rank is none.
  dist::Group* sharers_of_values() const;
  /// The places among sharers() of the ranks that do.
  std::vector<int> places_of_values() const;
  /// Groups of sharers, each with samples of its own, and which is this rank's.
  int data_ranks() const { return mesh_.size(dist::Axes::dp); }
  int data_rank() const { return mesh_.place(dist::Axes::dp); }

 private:
  dist::Axes sharing_axes() const;

  dist::Mesh mesh_;
  models::NetworkLayout network_;
  std::unique_ptr<dist::Group> ends_;  // of more than two stages, or those between them
  std::unique_ptr<nn::BlockShards> blocks_;
};

/// Of the ranks of a pipeline's first stage, or of all, the one that has most of a pack of these
/// samples. Where all have about as much it is the first, which has the longer parts.
int fullest_rank(const Recipe& recipe, int ranks, const std::vector<data::Entry>& samples);

/// The layout that a recipe asks for, dp left open.
dist::Layout wanted_layout(const ParallelRecipe& recipe);

/// A communicator's buffers on each of its GPUs, judged: NCCL has some MiB for each of its
/// channels.
inline constexpr double kCommunicatorBytes = 256.0 * (1 << 20);
/// Communicators that a rank's tensors go by: of tp; of cp, or its two parts; of those who sum
/// gradients of parts, and of whole weights; of replicas of the state; of stages one a direction.
int communicators_of(const dist::Layout& layout, int replicas);
/// Bytes that those of a run of `recipe` take of each GPU, beside all that is the model's
/// (train/cost/memory.h); on a CPU none. The layout is one that check_layout() lets pass.
double communicator_bytes(const Recipe& recipe, int ranks, int of_machine, Device device);

/// The one judge of layouts: that a run of `recipe`, which is fitted to its data, can have the
/// layout it asks for on so many ranks, `of_machine` of them on each machine. Throws Error{usage}
/// with the rule. Nothing is made of the model.
void judge_layout(const Recipe& recipe, int ranks, int of_machine);
/// The same, and what is refused is told with the settings of the nearest layout that is not, also
/// by the samples of `data` (null: not known).
void check_layout(const Recipe& recipe, int ranks, int of_machine, const Dataset* data = nullptr);
/// Groups of ranks with samples of their own that a step has no pack for: they take part in its
/// exchanges with an empty one.
int idle_data_ranks(const Recipe& recipe, int ranks);
/// Warns of these; and where a pipeline has fewer microbatches a step than stages. `begun`: a run
/// goes on, whose packs stay.
void warn_of_idle_ranks(const Recipe& recipe, int ranks, bool begun = false);
void warn_of_idle_stages(const Recipe& recipe, int ranks, bool begun = false);
/// What the data say of it: throws Error{usage} for a sample with too few tokens for those who
/// share it. Dataset::fit asks it of every sample.
void check_share(const Recipe& recipe, const data::Entry& sample);

}  // namespace vfm::train

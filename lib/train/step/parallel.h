// How the ranks of a run share its work, by the recipe's 'parallel'.
//
// The ranks that tp, cp and pp leave are those of dp. The distribution of layers, heads, tokens and
// samples over ranks is in dist/mesh.h and nn/network_layout.h.
// Thread-safety: that of the World, which must outlive this object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "data/latents.h"
#include "dist/mesh.h"
#include "dist/world.h"
#include "nn/block_shards.h"
#include "nn/network_layout.h"
#include "nn/parameter.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

class Dataset;

class Parallel {
 public:
  /// A collective. Throws Error{usage}, naming the nearest layout, if these ranks cannot have the
  /// recipe's. `of_machine` ranks are on one machine; 0: as in the world.
  Parallel(const Recipe& recipe, dist::World& world, int of_machine = 0);

  dist::World& world() const { return mesh_.world(); }
  const dist::Mesh& mesh() const { return mesh_; }
  /// The layout of a network, and this rank's part of it.
  const nn::NetworkLayout& network() const { return network_; }
  /// Gathers the matrices of the first network's blocks; null if each rank has all of them. Another
  /// network has another() of it.
  nn::BlockShards* blocks() const { return blocks_.get(); }
  /// The ranks that share samples, including this one.
  dist::Group& sharers() const { return mesh_.group(mesh_.layout().sharing()); }
  /// The sharers that need more of a sample than sizes and text: in a pipeline those of the first
  /// and the last stage. Null if this rank is none of them.
  dist::Group* sharers_of_values() const;
  /// The places among sharers() of the ranks in sharers_of_values().
  std::vector<int> places_of_values() const;
  /// data_ranks() is the number of groups of sharers, each with samples of its own; data_rank() is
  /// the number of this rank's group.
  int data_ranks() const { return mesh_.size(dist::Axes::dp); }
  int data_rank() const { return mesh_.place(dist::Axes::dp); }

 private:
  dist::Mesh mesh_;
  nn::NetworkLayout network_;
  // With more than two stages: the ranks of both ends, or of the rest.
  std::unique_ptr<dist::Group> ends_;
  std::unique_ptr<nn::BlockShards> blocks_;
};

/// The rank with the largest part of a pack of these samples, of all ranks or of a pipeline's first
/// stage. If all parts are about equal, it is the first rank, which has the longer ones.
int fullest_rank(const Recipe& recipe, int ranks, const std::vector<data::Entry>& samples);

/// Buffers of a communicator on each of its GPUs, estimated: NCCL has some MiB for each channel.
inline constexpr double kCommunicatorBytes = 256.0 * (1 << 20);
/// The number of communicators of a rank: tp; cp, or its two parts; sums of gradients of parts, and
/// of whole weights; replicas of the state; and one for each direction between stages.
int communicators_of(const dist::Layout& layout);
/// Bytes that communicators of a run of `recipe` take on each GPU, beside all of the model's memory
/// (train/cost/memory.h); 0 on a CPU. check_layout() must accept the layout.
double communicator_bytes(const Recipe& recipe, int ranks, int of_machine, Device device);

/// Throws Error{usage}, naming the rule, if a run of `recipe` cannot have its layout on `ranks`
/// ranks with `of_machine` on each machine. `recipe` is fitted to its data. Every check of a layout
/// uses this function. It builds nothing of the model.
void judge_layout(const Recipe& recipe, int ranks, int of_machine);
/// The same; the error also gives the settings of the nearest layout that is possible, with the
/// samples of `data` if these are known (null: not known).
void check_layout(const Recipe& recipe, int ranks, int of_machine, const Dataset* data = nullptr);
/// The number of groups of sharers that get no pack in a step. They take part in the step's
/// exchanges without samples.
int idle_data_ranks(const Recipe& recipe, int ranks);
/// Warn of such groups, and of a pipeline with fewer microbatches a step than stages. `begun`: the
/// run is resumed, so its packs cannot change.
void warn_of_idle_ranks(const Recipe& recipe, int ranks, bool begun = false);
void warn_of_idle_stages(const Recipe& recipe, int ranks, bool begun = false);
/// Throws Error{usage} if a sample has too few tokens for the ranks that share it. Dataset::fit
/// calls it for every form of sample.
void check_share(const Recipe& recipe, const data::Entry& sample);

}  // namespace vfm::train

// Deals prompts to groups of ranks; the ranks of a group make each clip together.
//
//   cfg   half of the ranks compute the guided part of an estimate, half the unguided part
//   cp    each has a part of a clip's tokens
//   tp    each has a part of the heads and widths of the network
//   pp    each has some of the layers, of an autoregressive model
//
// The remaining ranks form more such groups, along the mesh's dp (dist/mesh.h):
//
//   rank = tp_i + tp (cp_i + cp (cfg_i + cfg (clip_i + clips pp_i)))
//
// nn/network_layout.h gives a rank's part of the network. Thread-safety: that of the World,
// which must outlive the object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "dist/group.h"
#include "dist/mesh.h"
#include "dist/world.h"
#include "nn/network_layout.h"

namespace vfm::generate {

/// "cfg=2 cp=2 ring": the sizes other than 1; empty: one rank. Layouts of diffusion models round
/// differently, so the name is part of a clip's address. Shards change no bit of the result, so it
/// does not have them.
std::string clip_layout_name(const dist::Layout& parallel);
/// The text from which parse_parallel() makes the same layout, without shards.
std::string clip_layout_option(const dist::Layout& parallel);

/// Parses "cfg=2,cp=4,tp=2,cp_kind=ring,hybrid,shard", each optional; "auto"; or "auto=8" for 8
/// ranks. With `shard` each rank keeps a part of the matrices of blocks, and a block's matrices are
/// gathered before it runs (nn/block_shards.h). Throws Error{usage}.
dist::Layout parse_parallel(std::string_view text);

/// Throws Error{usage} unless `ranks` make whole groups.
void check_ranks(const dist::Layout& parallel, int ranks);

class ClipRanks {
 public:
  /// A collective. `parallel` leaves nothing open in cp (nn::settled_cp()). Throws what
  /// check_ranks() throws.
  ClipRanks(dist::World& world, const dist::Layout& parallel);

  dist::World& world() const { return mesh_.world(); }
  dist::Group& all() const { return *all_; }
  /// leads(): this rank reads prompts and files for its group and writes the group's clips.
  /// first(): this rank does so for all groups.
  bool leads() const { return clip_->rank() == 0; }
  bool first() const { return world().rank() == 0; }
  /// clip(): the ranks that make a clip together. halves(): one rank of each half of a guided
  /// estimate. half(): the ranks of this half.
  dist::Group& clip() const { return *clip_; }
  dist::Group& halves() const { return mesh_.group(dist::Axes::cfg); }
  dist::Group& half() const { return mesh_.group(dist::Axes::tp | dist::Axes::cp); }
  /// The ranks at this rank's place in all groups. For a leader these are all leaders.
  dist::Group& clips() const { return *clips_; }
  /// The layout of one network. With `shard` it gathers blocks from the ranks' parts.
  const nn::NetworkLayout& network() const { return network_; }
  /// Returns whether the two halves of an estimate exchange data while they are computed. Then both
  /// must be computed, even without guidance.
  bool halves_meet(bool fp8) const { return halves().size() > 1 && (blocks_ || fp8); }

 private:
  std::unique_ptr<dist::Group> make(std::string_view name, dist::Axes axes) const;
  void share_matrices();

  dist::Mesh mesh_;
  std::unique_ptr<dist::Group> all_, clip_, clips_;
  /// Ranks of the clip with the same matrices: whole_ for uncut matrices, cut_ for those cut along
  /// tp.
  std::unique_ptr<dist::Group> whole_, cut_;
  std::unique_ptr<nn::BlockShards> blocks_;
  nn::NetworkLayout network_;
};

}  // namespace vfm::generate

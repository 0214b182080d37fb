// Deals prompts to groups of ranks; the ranks of a group make each clip together.
//
//   cfg   half of the ranks compute the guided part of an estimate, half the unguided part
//   cp    each has a part of a clip's tokens
//   tp    each has a part of the heads and widths of the network
//
// The remaining ranks form more such groups:
//
//   rank = tp_i + tp (cp_i + cp (cfg_i + cfg clip_i))
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
#include "nn/cp_kind.h"
#include "nn/network_layout.h"

namespace vfm::generate {

/// The number of ranks that make a clip together, and how they share it.
struct ClipParallel {
  int cfg = 1, cp = 1, tp = 1;
  /// With cp: a name of nn::CpKind, or "auto", which agree_on_ranks() resolves.
  std::string cp_kind = "auto";
  /// With cp and an ST-DiT: parts of cp end at frames (models/dit/stdit_shard.h), and cp_kind
  /// applies only to full attention.
  bool hybrid = false;
  /// Each rank keeps a part of the matrices of blocks. A block's matrices are gathered before it
  /// runs (nn/block_shards.h). It changes no bit of the result, so it is not part of the name.
  bool shard = false;
  /// Not 0: choose_parallel() must still choose a layout for this number of ranks; kAllRanks: for
  /// all ranks of the world.
  int choose = 0;
  static constexpr int kAllRanks = -1;

  int ranks() const { return cfg * cp * tp; }
  bool alone() const { return ranks() == 1; }
  /// "cfg=2 cp=2 ring": the sizes other than 1; empty: one rank. Layouts round differently, so the
  /// name is part of a clip's address.
  std::string name() const;
  /// The text from which parse_parallel() makes the same layout, without `shard`.
  std::string option() const;
};

/// Parses "cfg=2,cp=4,tp=2,cp_kind=ring,hybrid,shard", each optional; "auto"; or "auto=8" for 8
/// ranks. Throws Error{usage}.
ClipParallel parse_parallel(std::string_view text);

/// Throws Error{usage} unless `ranks` make whole groups.
void check_ranks(const ClipParallel& parallel, int ranks);

class ClipRanks {
 public:
  /// A collective. `cp` is the resolved parallel.cp_kind. Throws what check_ranks() throws.
  ClipRanks(dist::World& world, const ClipParallel& parallel, const nn::CpChoice& cp = {});

  dist::World& world() const { return mesh_.world(); }
  dist::Group& all() const { return *all_; }
  /// leads(): this rank reads prompts and files for its group and writes the group's clips.
  /// first(): this rank does so for all groups.
  bool leads() const { return clip_->rank() == 0; }
  bool first() const { return world().rank() == 0; }
  /// clip(): the ranks that make a clip together. halves(): one rank of each half of a guided
  /// estimate. half(): the ranks of this half.
  dist::Group& clip() const { return *clip_; }
  dist::Group& halves() const { return *halves_; }
  dist::Group& half() const { return mesh_.group(dist::Axes::tp | dist::Axes::cp); }
  /// The ranks at this rank's place in all groups. For a leader these are all leaders.
  dist::Group& clips() const { return *clips_; }
  /// The layout of one network. With `shard` it gathers blocks from the ranks' parts.
  const nn::NetworkLayout& network() const { return network_; }
  /// Returns whether the two halves of an estimate exchange data while they are computed. Then both
  /// must be computed, even without guidance.
  bool halves_meet(bool fp8) const { return halves().size() > 1 && (blocks_ || fp8); }

 private:
  void share_matrices(const ClipParallel& parallel);

  dist::Mesh mesh_;
  std::unique_ptr<dist::Group> all_, clip_, halves_, clips_;
  /// Ranks of the clip with the same matrices: whole_ for uncut matrices, cut_ for those cut along
  /// tp.
  std::unique_ptr<dist::Group> whole_, cut_;
  std::unique_ptr<nn::BlockShards> blocks_;
  nn::NetworkLayout network_;
};

}  // namespace vfm::generate

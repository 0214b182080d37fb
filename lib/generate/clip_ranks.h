// Which ranks make which clips: prompts are dealt to groups of ranks, and each group makes one clip
// after the other together.
//
//   cfg   the guided and the unguided half of each estimate
//   cp    each has a part of a clip's tokens
//   tp    each has part of the heads and widths of the network
//
// What is left of the ranks are more such groups:
//
//   rank = tp_i + tp (cp_i + cp (cfg_i + cfg clip_i))
//
// Which part of a network that is: models/dit/network_layout.h. Thread-safety: that of the World,
// which must outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "dist/group.h"
#include "dist/mesh.h"
#include "dist/world.h"
#include "models/dit/cp_kind.h"
#include "models/dit/network_layout.h"

namespace vfm::generate {

/// How many ranks make a clip together, and how they share it.
struct ClipParallel {
  int cfg = 1, cp = 1, tp = 1;
  /// Of cp: a name of models::CpKind, or "auto", of which agree_on_ranks() makes one.
  std::string cp_kind = "auto";
  /// Of cp and an ST-DiT: parts of cp end at frames (models/dit/stdit_shard.h), and cp_kind is what
  /// full attention alone does.
  bool hybrid = false;
  /// Each keeps a part of the blocks' matrices, and a block's are gathered before it runs
  /// (nn/block_shards.h). It changes no bit, and so is not part of the name.
  bool shard = false;
  /// Not 0: nothing is chosen yet, and choose_parallel() has to, for so many ranks; all of the
  /// world's: kAllRanks.
  int choose = 0;
  static constexpr int kAllRanks = -1;

  int ranks() const { return cfg * cp * tp; }
  bool alone() const { return ranks() == 1; }
  /// "cfg=2 cp=2 ring", of what is not 1; empty: alone. Another layout rounds otherwise, so it is
  /// part of a clip's address.
  std::string name() const;
  /// What parse_parallel() makes the same of, but for shards.
  std::string option() const;
};

/// "cfg=2,cp=4,tp=2,cp_kind=ring,hybrid", of which each may be left out; "auto", or "auto=8" for so
/// many ranks. Throws Error{usage}.
ClipParallel parse_parallel(std::string_view text);

/// Throws Error{usage} unless so many ranks are whole groups.
void check_ranks(const ClipParallel& parallel, int ranks);

class ClipRanks {
 public:
  /// A collective. `cp` is what parallel.cp_kind means here. Throws what check_ranks() throws.
  ClipRanks(dist::World& world, const ClipParallel& parallel, const models::CpChoice& cp = {});

  dist::World& world() const { return mesh_.world(); }
  dist::Group& all() const { return *all_; }
  /// Whether this rank reads prompts and files for its group, and writes its clips; and whether it
  /// does so for all.
  bool leads() const { return clip_->rank() == 0; }
  bool first() const { return world().rank() == 0; }
  /// Those who make a clip together; among them the halves of a guided estimate, one rank of each;
  /// and those who have one half.
  dist::Group& clip() const { return *clip_; }
  dist::Group& halves() const { return *halves_; }
  dist::Group& half() const { return mesh_.group(dist::Axes::tp | dist::Axes::cp); }
  /// The ranks at this one's place in all groups; of those that lead, all that do.
  dist::Group& clips() const { return *clips_; }
  /// For one network: with `shard` it gathers blocks by what these keep.
  const models::NetworkLayout& network() const { return network_; }
  /// Whether the two halves of an estimate exchange something while they are computed: then both
  /// have to be, also of a clip that is not guided.
  bool halves_meet(bool fp8) const { return halves().size() > 1 && (blocks_ || fp8); }

 private:
  void share_matrices(const ClipParallel& parallel);

  dist::Mesh mesh_;
  std::unique_ptr<dist::Group> all_, clip_, halves_, clips_;
  /// Ranks of the clip that have the same of all matrices, and of those that are cut along tp.
  std::unique_ptr<dist::Group> whole_, cut_;
  std::unique_ptr<nn::BlockShards> blocks_;
  models::NetworkLayout network_;
};

}  // namespace vfm::generate

// Arranges the ranks of a world along axes: which ranks of one training share the heads, the
// tokens, the samples and the layers.
//
// Ranks next to each other in number are neighbours along tp, which has the most messages; then
// come cp, cfg, dp, pp (dist/layout.h). With tp=2, cp=2 the ranks 0 and 1 share heads, 0 and 2
// share tokens, and 0 and 4 share only the gradients:
//
//   rank = tp_i + tp (cp_i + cp (cfg_i + cfg (shard_i + shard (replicate_i + replicate pp_i))))
//
//   tp    each has part of the heads and widths of a layer     (tensor and sequence parallel)
//   cp    each has part of the tokens of a pack                (context parallel)
//   cfg   each has one half of a guided estimate               (generation)
//   dp    each has samples of its own                          (data parallel)
//   pp    each has some of the layers                          (pipeline)
//
// Thread-safety: that of the World, which must outlive the mesh.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>

#include "dist/group.h"
#include "dist/layout.h"
#include "dist/world.h"

namespace vfm::dist {

class Mesh {
 public:
  /// A collective. Makes the groups of each axis but dp, along which alone nothing is sent; of
  /// replicate, of cp|dp (sums gradients), of tp|cp (works on one sample), of cp|shard (shares one
  /// state), and of `more`. cp_heads and cp_ring have groups only if both have more than one rank.
  Mesh(World& world, const Layout& wanted, std::span<const Axes> more = {});

  const Layout& layout() const { return layout_; }
  World& world() const { return world_; }
  /// Throws Error for axes whose group was not made.
  Group& group(Axes axes) const;
  /// The ranks along axes that have a group, or along dp.
  int size(Axes axes) const { return axes == Axes::dp ? layout_.dp : group(axes).size(); }
  /// A second group of the ranks along pp, for messages from later stages to earlier ones, so that
  /// they do not queue behind messages in the other direction.
  Group& upstream() const { return upstream_ ? *upstream_ : group(Axes::pp); }
  /// This rank's place among them.
  int place(Axes axes) const { return axes == Axes::dp ? dp_place_ : group(axes).rank(); }
  /// A collective. Logs a warning if ranks that share tp, which exchange most, are on different
  /// hosts.
  void warn_of_slow_tp() const;

 private:
  World& world_;
  const Layout layout_;
  int dp_place_ = 0;
  std::map<Axes, std::unique_ptr<Group>> groups_;
  std::unique_ptr<Group> upstream_;  // null without a pipeline
};

}  // namespace vfm::dist

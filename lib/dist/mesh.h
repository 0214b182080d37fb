// The ranks of a world in rows and columns: which of them share the heads, the tokens, the samples,
// the layers of one training.
//
// Neighbours are closest along tp, whose messages are the most: then cp, dp, pp. So with tp=2, cp=2
// the ranks 0 and 1 share heads, 0 and 2 tokens, 0 and 4 nothing but the gradients:
//
//   rank = tp_i + tp (cp_i + cp (shard_i + shard (replicate_i + replicate pp_i)))
//
//   tp    each has part of the heads and widths of a layer     (tensor and sequence parallel)
//   cp    each has part of the tokens of a pack                (context parallel)
//   dp    each has samples of its own                          (data parallel)
//   pp    each has some of the layers                          (pipeline)
//
// dp is two axes: along `shard` each rank keeps a part of the state, along `replicate` the same. So
// is cp: cp_heads has the closest ranks, who exchange tokens for heads, and cp_ring those between
// whom keys go round.
// Thread-safety: that of the World, which must outlive the mesh.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/group.h"
#include "dist/world.h"

namespace vfm::dist {

/// One axis, or several together: Axes::cp | Axes::dp are all ranks that sum a weight's gradient.
enum class Axes : unsigned {
  tp = 1,
  cp_heads = 2,
  shard = 4,
  replicate = 8,
  pp = 16,
  cp_ring = 32,
  cp = 34,
  dp = 12
};
constexpr Axes operator|(Axes a, Axes b) {
  return static_cast<Axes>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
std::string axes_name(Axes axes);  ///< "tp", "cp+dp", ...: the axis of their group and traffic

/// Ranks along each axis.
struct Layout {
  int tp = 1, cp = 1;
  int dp = 0;  ///< 0: as many as are left
  int pp = 1;
  int shard = 1;     ///< divides dp
  int cp_heads = 1;  ///< divides cp

  bool operator==(const Layout&) const = default;
};
std::string to_string(
    const Layout& layout);  ///< "tp=2 cp=1 dp=4 pp=1", and what is left unless it is 1

/// Error{usage}: a layout cannot be, by a rule; and advice of whoever throws it, which sees that
/// rule alone. Who knows all rules gives his own.
class LayoutRefused : public Error {
 public:
  LayoutRefused(const std::string& rule, const std::string& advice)
      : Error(rule + advice, ErrorKind::usage), rule_(rule) {}
  const std::string& rule() const noexcept { return rule_; }

 private:
  std::string rule_;
};

/// `wanted` on that many ranks, with dp filled in. Throws LayoutRefused that names the nearest
/// layout if they do not make up the number of ranks, or shard does not divide dp, or cp_heads cp.
Layout fit_layout(const Layout& wanted, int ranks);
/// The layout of that many ranks whose sizes differ from the wanted by the smallest factors,
/// multiplied; dp may be any where it was left open. Of two alike the one with more tp, then cp,
/// pp.
Layout nearest_layout(const Layout& wanted, int ranks);
/// The ranks that share `axes` with `rank`: those equal to it along all others, ascending.
std::vector<int> ranks_along(Axes axes, const Layout& layout, int rank);

/// Which groups along `axes` lie on more than one host, and the largest tp that would not; empty:
/// none. `hosts` of all ranks.
std::string split_groups(Axes axes, const Layout& layout, std::span<const std::string> hosts);

class Mesh {
 public:
  /// A collective. Makes the group of each axis (of cp_heads and cp_ring if there are both), of dp,
  /// of cp|dp (who sums gradients), tp|cp (who works on one sample), cp|shard (who shares one
  /// state), and of `more`.
  Mesh(World& world, const Layout& wanted, std::span<const Axes> more = {});

  const Layout& layout() const { return layout_; }
  World& world() const { return world_; }
  /// Throws Error for axes whose group was not made.
  Group& group(Axes axes) const;
  int size(Axes axes) const { return group(axes).size(); }
  /// The ranks along pp once more, for what goes from later stages to earlier ones: it does not
  /// queue behind what goes the other way.
  Group& upstream() const { return upstream_ ? *upstream_ : group(Axes::pp); }
  /// This rank's place among them.
  int place(Axes axes) const { return group(axes).rank(); }
  /// A collective: says with a warning if ranks that share tp, which exchange most, are on
  /// different hosts.
  void warn_of_slow_tp() const;

 private:
  World& world_;
  const Layout layout_;
  std::map<Axes, std::unique_ptr<Group>> groups_;
  std::unique_ptr<Group> upstream_;  // null: no pipeline
};

}  // namespace vfm::dist

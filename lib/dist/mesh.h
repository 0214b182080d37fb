// Arranges the ranks of a world along axes: which ranks of one training share the heads, the
// tokens, the samples and the layers.
//
// Ranks next to each other in number are neighbours along tp, which has the most messages; then
// come cp, dp, pp. With tp=2, cp=2 the ranks 0 and 1 share heads, 0 and 2 share tokens, and 0 and 4
// share only the gradients:
//
//   rank = tp_i + tp (cp_i + cp (shard_i + shard (replicate_i + replicate pp_i)))
//
//   tp    each has part of the heads and widths of a layer     (tensor and sequence parallel)
//   cp    each has part of the tokens of a pack                (context parallel)
//   dp    each has samples of its own                          (data parallel)
//   pp    each has some of the layers                          (pipeline)
//
// dp has two axes: ranks along `shard` each keep a part of the state, and ranks along `replicate`
// keep the same state. cp has two axes, too: ranks along cp_heads, the closest, exchange tokens for
// heads, and ranks along cp_ring pass keys round a ring.
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

/// One axis or several: Axes::cp | Axes::dp are all ranks that sum a weight's gradient.
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
/// "tp", "cp+dp", ...: the name of the axes in groups and traffic.
std::string axes_name(Axes axes);

/// Number of ranks along each axis.
struct Layout {
  int tp = 1, cp = 1;
  int dp = 0;  ///< 0: all that remain
  int pp = 1;
  int shard = 1;     ///< divides dp
  int cp_heads = 1;  ///< divides cp

  bool operator==(const Layout&) const = default;
};
std::string to_string(
    const Layout& layout);  ///< "tp=2 cp=1 dp=4 pp=1"; shard and cp_heads follow unless they are 1

/// Error{usage}: a layout breaks a rule. The message is the rule, then advice from the code that
/// checks that rule alone. A caller who knows all rules gives advice of its own after rule().
class LayoutRefused : public Error {
 public:
  LayoutRefused(const std::string& rule, const std::string& advice)
      : Error(rule + advice, ErrorKind::usage), rule_(rule) {}
  const std::string& rule() const noexcept { return rule_; }

 private:
  std::string rule_;
};

/// Returns `wanted` for `ranks` ranks, with dp filled in. Throws LayoutRefused with the nearest
/// layout if the axes do not multiply to `ranks`, shard does not divide dp, or cp_heads does not
/// divide cp.
Layout fit_layout(const Layout& wanted, int ranks);
/// Returns the layout of `ranks` ranks that is nearest to `wanted`: the product of the factors by
/// which its sizes differ is smallest. A wanted dp of 0 leaves dp free. Among equally near layouts
/// the one with more tp wins, then more cp, then more pp.
Layout nearest_layout(const Layout& wanted, int ranks);
/// The ranks that differ from `rank` at most along `axes`, ascending.
std::vector<int> ranks_along(Axes axes, const Layout& layout, int rank);

/// Text that names the groups along `axes` that lie on more than one host, and the largest tp that
/// fits on one host; empty if there are no such groups. `hosts` has one entry per rank.
std::string split_groups(Axes axes, const Layout& layout, std::span<const std::string> hosts);

class Mesh {
 public:
  /// A collective. Makes the groups of each axis, of dp, of cp|dp (sums gradients), of tp|cp (works
  /// on one sample), of cp|shard (shares one state), and of `more`. cp_heads and cp_ring have
  /// groups only if both have more than one rank.
  Mesh(World& world, const Layout& wanted, std::span<const Axes> more = {});

  const Layout& layout() const { return layout_; }
  World& world() const { return world_; }
  /// Throws Error for axes whose group was not made.
  Group& group(Axes axes) const;
  int size(Axes axes) const { return group(axes).size(); }
  /// A second group of the ranks along pp, for messages from later stages to earlier ones, so that
  /// they do not queue behind messages in the other direction.
  Group& upstream() const { return upstream_ ? *upstream_ : group(Axes::pp); }
  /// This rank's place in the group of `axes`.
  int place(Axes axes) const { return group(axes).rank(); }
  /// A collective. Logs a warning if ranks that share tp, which exchange most, are on different
  /// hosts.
  void warn_of_slow_tp() const;

 private:
  World& world_;
  const Layout layout_;
  std::map<Axes, std::unique_ptr<Group>> groups_;
  std::unique_ptr<Group> upstream_;  // null without a pipeline
};

}  // namespace vfm::dist

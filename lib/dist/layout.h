// The axes of a run, and what its user asks for along each: how ranks share the heads, the tokens,
// the samples and the layers.
//
// A recipe's section `parallel`, --parallel of vfm-generate, the planner's candidates and the mesh
// of a run (dist/mesh.h) are all a Layout. A new axis is bits in Axes, a field of Layout and a row
// of all_axes(). Groups, keys, the manual, checks of sizes and the planner's layouts follow.
// Thread-safety: free functions and plain values, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"

namespace vfm::dist {

/// One axis or several: Axes::cp | Axes::dp are all ranks that sum a weight's gradient. Two axes
/// have two parts each. Ranks along cp_heads, the closest, exchange tokens for heads, and ranks
/// along cp_ring pass keys round a ring. Ranks along `shard` each keep a part of the state, and
/// ranks along `replicate` keep the same state.
enum class Axes : unsigned {
  none = 0,
  tp = 1,
  cp_heads = 2,
  cp_ring = 32,
  cp = 34,
  cfg = 64,
  shard = 4,
  replicate = 8,
  dp = 12,
  pp = 16
};
constexpr Axes operator|(Axes a, Axes b) {
  return static_cast<Axes>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// True if `all` has every axis of `some`.
constexpr bool includes(Axes all, Axes some) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(some)) == static_cast<unsigned>(some);
}
/// "tp", "cp+dp", ...: the name of the axes in groups and traffic.
std::string axes_name(Axes axes);
/// The axes with this name. Throws Error if there are none.
Axes axes_named(std::string_view name);

/// How the ranks of cp share self-attention (nn/cp_kind.h). `automatic` is still to be chosen.
enum class CpKind { automatic, gather, all_to_all, ring, all_to_all_ring };
/// How ranks keep the state. none: every rank keeps all of it. optimizer: each rank of dp x cp
/// keeps a part of moments, masters and average. full: also a part of the weights and gradients.
enum class ShardKind { none, optimizer, full };
/// With ShardKind::full: whether gathered matrices are freed after use. `automatic`: they are,
/// unless there is a pipeline, whose stages gather once a step.
enum class Reshard { automatic, always, never };

/// What was asked for: the ranks along each axis, and how they share. A size of 0 is open.
struct Layout {
  int tp = 1;         ///< ranks that share the heads and widths of layers
  int cp = 1;         ///< ranks that share the tokens of a sample
  int tp_chunks = 0;  ///< chunks of rows that travel along tp (train/plan/tp_chunks.h)
  CpKind cp_kind = CpKind::automatic;
  int cp_heads = 0;     ///< ranks of the all-to-all in CpKind::all_to_all_ring; divides cp
  bool hybrid = false;  ///< ST-DiT: parts of cp end at frames; cp_kind is for full attention only
  int cfg = 1;          ///< 2: half of the ranks compute the unguided part of an estimate
  int dp = 0;           ///< groups of ranks with samples of their own; 0: all that remain
  int pp = 1, vpp = 1;  ///< stages of a pipeline, and chunks of blocks in each stage
  int ahead = 0;        ///< further microbatches in flight between stages; needs vpp 1
  std::vector<int> stages = {};  ///< blocks of each of pp·vpp chunks; empty: balanced by their work
  ShardKind shard = ShardKind::none;
  int replicate = 1;  ///< with shards: groups of ranks that each keep the whole state; divides dp
  Reshard reshard = Reshard::automatic;
  DType reduce = DType::f32;  ///< type in which gradients travel
  int paying_chunks = 1;      ///< what an open tp_chunks stands for
  /// Ranks whose sizes are still to be chosen, kAllRanks: all of the world; 0: they are chosen.
  int choose = 0;
  static constexpr int kAllRanks = -1;

  auto operator<=>(const Layout&) const = default;

  int sharers() const;  ///< ranks that share a sample: all but those along dp
  bool alone() const { return sharers() == 1; }
  bool shards_state() const { return shard != ShardKind::none; }
  bool keeps_gathered() const { return reshard == Reshard::never; }
  int chunks() const { return tp_chunks > 0 ? tp_chunks : paying_chunks; }
  /// The axes whose ranks share a sample: tp, cp, and the others that have more than one rank.
  Axes sharing() const;
  Layout sizes() const;  ///< the sizes alone, with nothing of how ranks share
};

/// An axis, as all that goes axis by axis has it.
struct Axis {
  struct Part {
    Axes axes = Axes::none;
    std::string_view name = {};
  };
  Axes axes;              ///< all of its bits
  std::string_view name;  ///< in groups and messages; the key in recipes and in --parallel
  int Layout::*size;
  bool shares_sample = true;    ///< its ranks work on one sample
  bool always_named = false;    ///< layouts name its size even if it is 1
  int most = 0;                 ///< the most ranks in a recipe, and in a plan; 0: neither has it
  bool of_clips = false;        ///< --parallel has it
  std::string_view unit = {};   ///< of the recipe's key, in the manual
  std::string_view words = {};  ///< what the manual says of the recipe's key
  /// Of an axis in two parts: the inner one, whose ranks are closer, and its size; the outer one.
  Part inner = {};
  int (*inner_size)(const Layout&) = nullptr;
  Part outer = {};
};
/// From the axis with the closest ranks to that with the farthest: the order of the mesh.
std::span<const Axis> all_axes();

/// "tp=2 cp=1 dp=4 pp=1"; cfg, shard and cp_heads follow unless they are 1.
std::string to_string(const Layout& layout);

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
/// layout if the axes do not multiply to `ranks`, or a part does not divide its axis.
Layout fit_layout(const Layout& wanted, int ranks);
/// All sizes of a recipe's axes that `ranks` ranks can have, with dp filled in; in ascending order
/// of the first axis, then of the next.
std::vector<Layout> layouts_of(int ranks);
/// How far the sizes of a recipe's axes are from the wanted ones: the logarithm of the product of
/// the factors by which they differ.
double distance_of_sizes(const Layout& wanted, const Layout& layout);
/// Returns the layout of `ranks` ranks that is nearest to `wanted`. A wanted dp of 0 leaves dp
/// free. Among equally near layouts the one with more tp wins, then more cp, then more pp.
Layout nearest_layout(const Layout& wanted, int ranks);
/// The ranks that differ from `rank` at most along `axes`, ascending.
std::vector<int> ranks_along(Axes axes, const Layout& layout, int rank);

/// Text that names the groups along `axes` that lie on more than one host, and the largest tp that
/// fits on one host; empty if there are no such groups. `hosts` has one entry per rank.
std::string split_groups(Axes axes, const Layout& layout, std::span<const std::string> hosts);

}  // namespace vfm::dist

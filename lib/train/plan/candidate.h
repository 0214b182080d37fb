// One way to run a recipe on a number of GPUs, and the list of all such ways.
//
// A candidate is what vfm-train plan may choose: a layout, and the settings that decide together
// with it how long a step takes and whether it fits. check_layout() says which candidates a run
// accepts (train/step/parallel.h). Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/latents.h"
#include "nn/cp_kind.h"
#include "nn/recompute.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// A layout that leaves nothing open.
struct Candidate : dist::Layout {
  Candidate() : Candidate(dist::Layout()) {}
  /// An open value of `layout` becomes the plainest one: one chunk, gathered keys, one rank.
  Candidate(dist::Layout layout, nn::Recompute how = nn::Recompute::none);

  nn::Recompute recompute = nn::Recompute::none;
  bool offload = false;
  int micro_packs = 1;  ///< packs that go through the network together

  /// True if the recipe's 'parallel.ahead' applies.
  bool may_be_ahead() const { return pp > 1 && vpp == 1; }
  int gpus() const { return sharers() * dp; }
  /// The number of ranks that share one state.
  int state_ranks() const { return shards_state() ? cp * dp / replicate : 1; }
  /// Packs of one rank in a step of `packs` packs.
  int packs_of_rank(int packs) const { return (packs + dp - 1) / dp; }
  /// Passes of one rank through the network in a step of `packs` packs.
  int passes(int packs) const { return (packs_of_rank(packs) + micro_packs - 1) / micro_packs; }
  /// One rank that shares samples with as many as here, without a pipeline and shards: what a pass
  /// without them depends on.
  Candidate of_pass() const;
  /// The recipe with the settings of this candidate.
  Recipe of(Recipe recipe) const;
  /// The settings that make a default recipe into this candidate: "parallel.tp=2", ... Default
  /// values are left out, unless their key is in `given`.
  std::vector<std::string> settings(const std::set<std::string>& given = {}) const;
  /// The layout without other settings: "tp=2 cp=4 ring dp=8 shard=full".
  std::string layout() const;
  auto operator<=>(const Candidate&) const = default;
};

/// The candidate that a run of `recipe` on `ranks` ranks would be, `per_node` of them on a machine.
/// `recipe` is fitted to its data. Throws Error{usage} if these ranks cannot have the layout.
Candidate candidate_of(const Recipe& recipe, int ranks, int per_node, nn::Recompute recompute);

/// The layouts of a number of GPUs that a run of the recipe accepts, and counts of the refused
/// ones. All tp, cp, dp and pp are drawn, with all kinds of exchange along cp, and one, two and
/// four chunks of a stage. Shards are over all ranks with the same weights, over those on one node,
/// and over those on four nodes. If a rank has several passes a step, layouts that keep gathered
/// matrices are drawn, too.
struct Layouts {
  std::vector<Candidate> accepted;
  int drawn = 0;
  std::map<std::string, int> refused;  ///< number of refused layouts by the rule
};
/// The first rule by which a run refuses the candidate, in few words; "" if it accepts it.
std::string why_no_layout(const Recipe& recipe, const data::Entry& shortest,
                          const Candidate& candidate, int per_node);
/// Whether the candidate has the values in `wanted` of the keys of 'parallel' in `given`.
bool is_as_given(const Candidate& candidate, const std::set<std::string>& given,
                 const dist::Layout& wanted);
/// Draws the layouts. `recipe` is fitted to its data, `per_node` GPUs are on a machine, and
/// `shortest` is the sample of fewest tokens.
Layouts enumerate_layouts(const Recipe& recipe, const data::Entry& shortest, int gpus,
                          int per_node);

/// Layouts with fewer tokens of a pack on a rank are not considered: the rates of the tables hold
/// for kernels with many rows.
inline constexpr std::int64_t kLeastTokens = 128;

}  // namespace vfm::train

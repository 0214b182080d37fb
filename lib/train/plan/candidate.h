// One way to run a recipe on so many GPUs, and all of them.
//
// A candidate is what vfm-train plan may choose: a layout, and what decides with it whether a step
// and so its tokens. Which candidates a run takes, check_layout() says (train/step/parallel.h).
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/latents.h"
#include "models/dit/cp_kind.h"
#include "models/recompute.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// Who keeps what of the state: all all of it; each rank of dp x cp a part of moments, masters and
/// average; or of the weights and gradients, too.
enum class ShardKind { none, optimizer, full };

struct Candidate {
  int tp = 1, cp = 1;
  int tp_chunks = 1;  ///< of rows that travel along tp beside products
  models::CpKind cp_kind = models::CpKind::gather;
  int cp_heads = 1;     ///< of CpKind::all_to_all_ring
  bool hybrid = false;  ///< of an ST-DiT: cp_kind is of full attention alone
  int dp = 1;           ///< what the other axes leave of the GPUs
  int pp = 1, vpp = 1;
  ShardKind shard = ShardKind::none;
  int replicate = 1;  ///< groups of ranks that each keep all of the state; divides dp
  /// Of ShardKind::full, without a pipeline: whether gathered matrices are freed after each use.
  bool reshard = true;
  models::Recompute recompute = models::Recompute::none;
  bool offload = false;
  int micro_packs = 1;  ///< that go through the network together

  /// Whether the recipe's 'parallel.ahead' is for it.
  bool may_be_ahead() const { return pp > 1 && vpp == 1; }
  int gpus() const { return tp * cp * pp * dp; }
  /// Ranks that share one state, of as many as have the same weights.
  int state_ranks() const { return shard == ShardKind::none ? 1 : cp * dp / replicate; }
  /// Packs of a rank in a step, of `packs` in all.
  int packs_of_rank(int packs) const { return (packs + dp - 1) / dp; }
  /// Times that a rank's packs go through the network, of `packs` in all.
  int passes(int packs) const { return (packs_of_rank(packs) + micro_packs - 1) / micro_packs; }
  /// The recipe with it.
  Recipe of(Recipe recipe) const;
  /// What must stand in the recipe, or on the command line, where a recipe of defaults has these
  /// keys given: "parallel.tp=2", ... Without what is as by default and not given.
  std::vector<std::string> settings(const std::set<std::string>& given = {}) const;
  /// The layout alone: "tp=2 cp=4 ring dp=8 shard=full".
  std::string layout() const;
  bool operator==(const Candidate&) const = default;
};

/// What a run of `recipe`, which is fitted to its data, is on so many ranks, `per_node` of them on
/// a machine. Throws Error{usage} for a layout that they cannot have.
Candidate candidate_of(const Recipe& recipe, int ranks, int per_node, models::Recompute recompute);

/// The layouts of so many GPUs, `per_node` of them on a machine: those that a run of `recipe`,
/// which is fitted to its data, takes. The others are counted, by why. Drawn are all tp, cp, dp and
/// pp; all that ranks of cp exchange; of a stage one, two and four chunks; shards of all ranks that
/// have the same weights, of those on one node, and on four. Gathered matrices stay where a rank
/// has several passes a step, too.
struct Layouts {
  std::vector<Candidate> accepted;
  int drawn = 0;
  std::map<std::string, int> refused;  ///< by the rule
};
/// The first rule by which a run does not take one of them, in few words; "": it takes it.
std::string why_no_layout(const Recipe& recipe, const data::Entry& shortest,
                          const Candidate& candidate, int per_node);
/// Whether it is what the keys of 'parallel' in `given` say, with their values in `wanted`.
bool is_as_given(const Candidate& candidate, const std::set<std::string>& given,
                 const ParallelRecipe& wanted);
/// `shortest`: the sample of fewest tokens.
Layouts enumerate_layouts(const Recipe& recipe, const data::Entry& shortest, int gpus,
                          int per_node);

/// Fewer tokens of a pack on a rank than this are not looked at: kernels work on as many rows at
/// once, and the rates of the tables are for many of them.
inline constexpr std::int64_t kLeastTokens = 128;

}  // namespace vfm::train

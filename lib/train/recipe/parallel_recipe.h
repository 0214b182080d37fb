// The part of a recipe about ranks (vfm-recipe(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace vfm::train {

/// How the ranks of a run share its work (train/step/parallel.h). It does not belong to the run's
/// identity: a resumed run may have other values.
struct ParallelRecipe {
  int tp = 1;                            ///< ranks that share the heads and widths of layers
  /// See train/plan/tp_chunks.h. If tp_chunks is 0, paying_chunks applies, which is not a key.
  int tp_chunks = 0, paying_chunks = 1;
  int chunks() const { return tp_chunks > 0 ? tp_chunks : paying_chunks; }
  int cp = 1;                    ///< ranks that share the tokens of a pack
  /// Exchange between these ranks: name of a nn::CpKind, or "auto".
  std::string cp_kind = "auto";
  int cp_heads = 0;  ///< ranks of the all-to-all in all_to_all+ring; 0: most possible
  /// ST-DiT: parts of cp end at frames; cp_kind is used in full attention only.
  bool hybrid = false;
  int pp = 1, vpp = 1;         ///< stages of a pipeline, and chunks of blocks in each stage
  int ahead = 0;               ///< further microbatches in flight between stages; needs vpp 1
  std::vector<int> stages;     ///< blocks of each of pp·vpp chunks; empty: balanced by their work
  std::string reduce = "f32";  ///< "f32" or "bf16": type in which gradients travel
  /// The state that ranks of dp and cp share (train/state/state_shards.h). "none": nothing;
  /// "optimizer": the optimizer's state; "full": also the blocks.
  std::string shard = "none";
  int replicate = 1;  ///< groups of the ranks of dp that each keep the whole state
  /// For "full": "true" frees matrices after use, "false" when the step ends; "auto" is "true" if
  /// pp is 1.
  std::string reshard = "auto";
  bool keeps_gathered() const { return reshard == "false"; }
  DType reduce_type() const;
  bool shards_state() const { return shard != "none"; }
};

}  // namespace vfm::train

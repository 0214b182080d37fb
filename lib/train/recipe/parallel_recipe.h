// The part of the recipe that is of ranks (vfm-recipe(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace vfm::train {

/// How the ranks of a run share its work (train/step/parallel.h). No part of what a run is: one
/// that goes on may have another.
struct ParallelRecipe {
  int tp = 1;                            ///< ranks that share the heads and widths of layers
  int tp_chunks = 0,
      paying_chunks = 1;  ///< train/plan/tp_chunks.h; the second, no key, is what 0 means
  int chunks() const { return tp_chunks > 0 ? tp_chunks : paying_chunks; }
  int cp = 1;                    ///< ranks that share the tokens of a pack
  std::string cp_kind = "auto";  ///< what these exchange: models::CpKind by name, or "auto"
  int cp_heads = 0;  ///< where it is both: ranks that exchange tokens for heads; 0: most possible
  bool hybrid = false;  ///< ST-DiT: parts of cp end at frames; cp_kind is of full attention alone
  int pp = 1, vpp = 1;  ///< stages of a pipeline; and chunks of blocks that each of them has
  int ahead = 0;        ///< microbatches more that are under way, of one chunk
  std::vector<int> stages;     ///< blocks of each of pp·vpp chunks; empty: balanced by their work
  std::string reduce = "f32";  ///< "f32" or "bf16": in what gradients travel
  /// Kept together by dp and cp (train/state/state_shards.h): "none", "optimizer", or blocks too,
  /// "full".
  std::string shard = "none";
  int replicate = 1;             ///< groups of the ranks of dp that each keep all of it
  std::string reshard = "auto";  ///< "full": are matrices freed after use? "auto": where pp is 1
  bool keeps_gathered() const { return reshard == "false"; }
  DType reduce_type() const;
  bool shards_state() const { return shard != "none"; }
};

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/plan/stage_cuts.h"

#include "train/kind.h"

namespace vfm::train {

int* blocks_of(Recipe& recipe) {
  return kind_of(recipe.model.type).blocks(recipe.model);
}

int StageCuts::blocks() const {
  Recipe recipe = recipe_;
  const int* const blocks = blocks_of(recipe);
  return blocks == nullptr ? 1 : *blocks;
}

const std::vector<int>& StageCuts::of(int pp, int vpp) {
  const auto found = known_.find({pp, vpp});
  if (found != known_.end()) return found->second;
  std::vector<int> chunks;
  if (pp > 1) {
    Recipe recipe = recipe_;
    recipe.parallel.pp = pp;
    recipe.parallel.vpp = vpp;
    chunks = kind_of(recipe.model.type).balanced_stages(recipe);
  }
  return known_[{pp, vpp}] = std::move(chunks);
}

int blocks_of_stage(const std::vector<int>& chunks, int pp, int stage) {
  int blocks = 0;
  for (std::size_t i = static_cast<std::size_t>(stage); i < chunks.size();
       i += static_cast<std::size_t>(pp))
    blocks += chunks[i];
  return blocks;
}

}  // namespace vfm::train

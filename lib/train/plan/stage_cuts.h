// Where the stages of a pipeline begin, for many pipelines of one recipe: what a run finds for its
// own (Kind::balanced_stages) is found once for each, as that runs a block on Device::meta.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "train/recipe/recipe.h"

namespace vfm::train {

/// Where the recipe's kind has its number of blocks; null: it has none, and is counted whole.
int* blocks_of(Recipe& recipe);

class StageCuts {
 public:
  /// Keeps the reference. `recipe` is fitted to the data.
  explicit StageCuts(const Recipe& recipe) : recipe_(recipe) {}

  int blocks() const;  ///< of the network; 1: it has none
  /// The blocks of each of pp·vpp chunks; empty: no pipeline. Throws Error{usage} for more chunks
  /// than blocks.
  const std::vector<int>& of(int pp, int vpp);

 private:
  const Recipe& recipe_;
  std::map<std::pair<int, int>, std::vector<int>> known_;
};

/// Of such chunks the blocks of rank `stage`.
int blocks_of_stage(const std::vector<int>& chunks, int pp, int stage);

}  // namespace vfm::train

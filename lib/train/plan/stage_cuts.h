// The cuts of a network into stages of a pipeline, for many pipelines of one recipe. The cuts are
// those of a run (Kind::balanced_stages). Each is computed once and kept, as that runs a block on
// Device::meta. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "train/recipe/recipe.h"

namespace vfm::train {

/// The recipe's field with the number of blocks. Null if the kind has none; its network is then
/// counted whole.
int* blocks_of(Recipe& recipe);

class StageCuts {
 public:
  /// Keeps the reference. `recipe` is fitted to the data.
  explicit StageCuts(const Recipe& recipe) : recipe_(recipe) {}

  int blocks() const;  ///< blocks of the network; 1 if it has none
  /// The blocks of each of pp·vpp chunks; empty without a pipeline. Throws Error{usage} if there
  /// are more chunks than blocks.
  const std::vector<int>& of(int pp, int vpp);

 private:
  const Recipe& recipe_;
  std::map<std::pair<int, int>, std::vector<int>> known_;
};

/// The number of blocks of rank `stage`, if the chunks have these numbers of blocks.
int blocks_of_stage(const std::vector<int>& chunks, int pp, int stage);

}  // namespace vfm::train

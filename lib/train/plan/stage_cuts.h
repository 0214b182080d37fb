// The blocks of a network, and its cuts into stages of a pipeline, for many pipelines of one
// recipe. The cuts are those of a run (Kind::balanced_stages). Each is computed once and kept, as
// is the work that they balance. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "models/dit/pipeline_stages.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// The recipe's field with the number of blocks. Null if the kind has none; its network is then
/// counted whole.
int* blocks_of(Recipe& recipe);

/// The numbers of blocks of two networks that stand for one with more blocks, or fewer. What `more`
/// has beyond `less` are blocks of all kinds in the proportion of what the whole has beyond `less`.
struct FewBlocks {
  int less = 0, more = 0;
  /// How often the whole of `blocks` blocks has beyond `less` what `more` has.
  double times(double blocks) const { return (blocks - less) / (more - less); }
};

class StageCuts {
 public:
  /// Keeps the reference. `recipe` is fitted to the data.
  explicit StageCuts(const Recipe& recipe);

  int blocks() const { return blocks_; }  ///< blocks of the network; 1 if it has none
  /// The kind of each block (Kind::block_kinds()) of the recipe's network, or of one with so many
  /// blocks.
  const std::vector<int>& kinds() const { return kinds_; }
  std::vector<int> kinds(int blocks) const;
  bool alike() const;  ///< whether all blocks are of one kind
  /// Two networks that stand for the recipe's. If blocks are alike, they have `least` blocks, and
  /// one more. Otherwise the smaller one has all kinds of blocks where the recipe's network has
  /// them: at the ends, and between. Then it has at least `least` blocks times the kinds and at
  /// least kLeastUnlike, or as many as the recipe's.
  FewBlocks few(int least) const;
  static constexpr int kLeastUnlike = 4;

  /// The blocks of each of pp·vpp chunks; empty without a pipeline. Throws Error{usage} if there
  /// are more chunks than blocks.
  const std::vector<int>& of(int pp, int vpp);
  /// The same, or one chunk with all blocks.
  std::vector<int> chunks(int pp, int vpp);
  /// The blocks of a stage, in units of the mean block by number of weights.
  double weights_of_stage(int pp, int vpp, int stage);

 private:
  const models::PartWork& work();

  const Recipe& recipe_;
  int blocks_ = 1;
  std::vector<int> kinds_;
  std::optional<models::PartWork> work_;
  std::map<std::pair<int, int>, std::vector<int>> known_;
};

/// The blocks of rank `stage`, if the chunks have these numbers of blocks.
std::vector<int> blocks_of_stage(const std::vector<int>& chunks, int pp, int stage);

}  // namespace vfm::train

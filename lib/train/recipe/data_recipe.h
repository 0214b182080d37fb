// The part of the recipe that is of data: which samples, and how they become packs (vfm-recipe(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/packing.h"

namespace vfm::train {

struct DataRecipe {
  int frames = 17;             ///< of pixels: of a clip, at most
  int size = 256;              ///< of pixels: side of the square that is cut out; or its area's
  int shorter_side = 0;        ///< of pixels: of the picture before that, at most; 0: as it is
  std::int64_t tokens = 8192;  ///< capacity of a pack
  int packs = 1;               ///< packs a step, over all ranks
  int window = 64;             ///< samples that packing looks at
  /// Of several folders: where they are, unless the command line says; how much each weighs, or how
  /// often it comes in an epoch. At most one of the latter two; neither: each once.
  std::vector<std::string> folders;
  std::vector<double> weights, repeats;
  std::int64_t ahead = std::int64_t{64}
                       << 20;  ///< bytes of samples that are read before their step
  int micro_packs = 0;         ///< packs that a rank puts into one forward; 0: all of its step
  // Of clips that are encoded while training (train/encoded/encoded_clips.h):
  double fps = 0;               ///< frames a second to take; 0: all
  int windows = 0;              ///< of a clip, at most; 0: as many as follow one another
  int overlap = 0;              ///< frames that one shares with the next
  std::string crop = "random";  ///< or "centre"
  double flip = 0;              ///< how probable it is that a clip is mirrored
  /// Columns of captions, of which each epoch takes one.
  std::vector<std::string> captions = {"caption"};

  data::PackingOptions pack_options() const;
};

}  // namespace vfm::train

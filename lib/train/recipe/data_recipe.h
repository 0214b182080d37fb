// The data part of a recipe: which samples, and how they become packs (vfm-recipe(5)).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/packing.h"

namespace vfm::train {

struct DataRecipe {
  int frames = 17;  ///< most frames of a clip, or of a window of it
  /// For clips: area of the picture is about size^2, or side of the square cut from it.
  int size = 256;
  /// For clips: shrink the shorter side to it before the cut; 0: do not shrink.
  int shorter_side = 0;
  std::int64_t tokens = 8192;  ///< capacity of a pack
  int packs = 1;               ///< packs a step, over all ranks
  int window = 64;             ///< samples in the window of packing
  /// For a blend: the folders, unless the command line names some, and the weight of each or how
  /// often an epoch repeats it. Set weights or repeats, not both. With neither, an epoch has each
  /// once.
  std::vector<std::string> folders;
  std::vector<double> weights, repeats;
  /// Bytes of samples that are read before their step.
  std::int64_t ahead = std::int64_t{64} << 20;
  int micro_packs = 0;  ///< packs that go through the network together; 0: all of a rank's step
  // For clips that are encoded during training (train/encoded/encoded_clips.h):
  double fps = 0;               ///< frames a second to take; 0: all
  int windows = 0;              ///< most windows of a clip; 0: all that follow one another
  int overlap = 0;              ///< frames that a window shares with the next
  std::string crop = "random";  ///< or "centre"
  double flip = 0;              ///< probability that a clip is mirrored
  /// Columns of captions; each epoch takes one.
  std::vector<std::string> captions = {"caption"};

  data::PackingOptions pack_options() const;
};

}  // namespace vfm::train

// Samples that one rank reads and the ranks that share a network with it need.
//
// Each byte is read once for all of them, and travels once; a sample that could not be read is one
// that none of them has. Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dist/group.h"
#include "train/sample.h"

namespace vfm::train {

/// One that was read, or why it was not.
struct ReadSample {
  CleanSample sample;   ///< if it was not read its key alone
  std::string failure;  ///< "": it was read
};

/// On all ranks of the group what the first one has read; latents, codes and pixels on those of
/// `of_values` alone, whose first one it is too, zeros elsewhere, where that is null. A collective.
void share_samples(dist::Group& group, dist::Group* of_values, std::vector<ReadSample>& samples);

}  // namespace vfm::train

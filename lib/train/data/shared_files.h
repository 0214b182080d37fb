// The small files of the data, read by one rank for all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/clips.h"
#include "data/given_texts.h"
#include "dist/world.h"
#include "train/run.h"

namespace vfm::train {

/// Rank 0 reads the small files of the folders of latents that the run opens
/// (data::read_small_files()), or lists the clips of its dataset, and gives that to all ranks: what
/// a start reads then does not grow with the ranks. Empty without folders. A collective.
data::FileTexts share_small_files(dist::World& world, const RunOptions& options);

/// What the run asks of the clips of its dataset. `captions`: whether there is an encoder of them.
data::ClipListing clip_listing_of(const RunOptions& options, bool captions = false);

}  // namespace vfm::train

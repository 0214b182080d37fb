// Clips for a video tokenizer: those of a dataset that vfm-shard wrote, and made-up ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/data/dataset.h"
#include "train/data/synthetic.h"

namespace vfm::train {

/// `split` of the clips in `directory`, a dataset of vfm-shard, for the recipe's tokenizer: they
/// become pixels at places as random as vfm-pack's, those of the middle for validation. Throws
/// Error{usage} if there are none.
std::unique_ptr<Dataset> open_clips(const std::string& directory, const std::string& split,
                                    const Recipe& recipe);

/// Normal numbers as pixels. Throws Error{usage} for sizes that are no squares, or that the
/// tokenizer cannot encode.
std::unique_ptr<Dataset> make_up_clips(const SampleSizes& sizes,
                                       const models::CosmosConfig& tokenizer);

}  // namespace vfm::train

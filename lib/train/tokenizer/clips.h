// Clips for a video tokenizer: from a dataset of vfm-shard, or made up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/data/dataset.h"
#include "train/data/synthetic.h"

namespace vfm::train {

/// Opens `split` of the vfm-shard dataset `directory` for the recipe's tokenizer. Pixels are taken
/// at random places as in vfm-pack; for validation in the middle. Throws Error{usage} if the split
/// is empty.
std::unique_ptr<Dataset> open_clips(const std::string& directory, const std::string& split,
                                    const Recipe& recipe);

/// Clips with normal random numbers as pixels. Throws Error{usage} if sizes are not square, or the
/// tokenizer cannot encode them.
std::unique_ptr<Dataset> make_up_clips(const SampleSizes& sizes,
                                       const models::CosmosConfig& tokenizer);

}  // namespace vfm::train

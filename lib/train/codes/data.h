// Discrete latents for an autoregressive decoder: from vfm-pack, or made up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/data/dataset.h"
#include "train/data/synthetic.h"

namespace vfm::train {

/// Opens `split` of the codes in `directory`, with their texts if `texts` is set and there are
/// some. Throws Error{usage} if the split is empty.
std::unique_ptr<Dataset> open_codes(const std::string& directory, const std::string& split,
                                    bool texts = true);

/// Fits the recipe's decoder to `data`, which has `vocabulary` codes. Throws Error{usage}.
void fit_decoder(Recipe& recipe, const Dataset& data, int vocabulary);

/// Uniformly random codes, with texts of normal random numbers.
struct MadeUpCodes {
  SampleSizes sizes;
  int vocabulary = 64000;
  int text_tokens = 512, text_width = 0;  ///< width 0: without text
};
std::unique_ptr<Dataset> make_up_codes(const MadeUpCodes& options);

}  // namespace vfm::train

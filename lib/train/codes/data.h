// Discrete latents for an autoregressive decoder: those that vfm-pack wrote, and made-up ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/data/dataset.h"
#include "train/data/synthetic.h"

namespace vfm::train {

/// `split` of the codes in `directory`; `texts`: with their texts, if they have some. Throws
/// Error{usage} if there are none.
std::unique_ptr<Dataset> open_codes(const std::string& directory, const std::string& split,
                                    bool texts = true);

/// Fits the decoder to `data`, of so many codes. Throws Error{usage}.
void fit_decoder(Recipe& recipe, const Dataset& data, int vocabulary);

/// Codes that are all alike probable, and texts of normal numbers.
struct MadeUpCodes {
  SampleSizes sizes;
  int vocabulary = 64000;
  int text_tokens = 512, text_width = 0;  ///< width 0: without text
};
std::unique_ptr<Dataset> make_up_codes(const MadeUpCodes& options);

}  // namespace vfm::train

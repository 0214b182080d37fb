// Codes of a video, written one after the other by the autoregressive decoder: each drawn from the
// most likely ones.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "generate/sampling/sample_options.h"
#include "models/decoder/decoder.h"

namespace vfm::generate {

/// How a code is drawn from its probabilities. SampleOptions::validate() has the limits.
struct CodeOptions {
  double temperature = 1;  ///< divides the logits; 0: the most likely code, always
  double top_p = 0.9;      ///< draws from the fewest codes that together have this probability; 1:
                           ///< from all
};

/// Returns the code that `u` in [0, 1) draws: the codes in falling order of probability (equal ones
/// in rising order of their number) share [0, 1) by their probabilities. Throws Error if the logits
/// are not numbers.
std::int32_t draw_code(std::span<const float> logits, const CodeOptions& options, double u);

/// Returns the codes (T, H, W) of a video. Element i of `random` draws code i. `given` are the
/// video's first codes, taken unchanged: the beginning that the video continues. `text` is f32
/// (tokens, E), or undefined for a model without text. `how_far` is called for each code. Throws
/// Error{usage} if more codes are given than the video has, Stopped when asked to stop.
std::vector<std::int32_t> write_codes(const models::CausalDecoder& decoder,
                                      const models::CodeSample& sample, const Tensor& text,
                                      std::span<const std::int32_t> given,
                                      const CodeOptions& options, const Random& random,
                                      const HowFar& how_far = {});

}  // namespace vfm::generate

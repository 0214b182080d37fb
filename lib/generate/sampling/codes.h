// Codes of a video, written one after the other by the autoregressive decoder: each drawn from the
// most likely ones.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

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

/// A video to write. Element i of the stream (seed, key) draws code i.
struct CodeJob {
  models::CodeSample sample;
  std::vector<float> text;          ///< (sample.text_tokens, E); empty for a model without text
  std::vector<std::int32_t> given;  ///< first codes, taken unchanged: what the video continues
  CodeOptions options;
  std::uint64_t seed = 0, key = 0;
};

/// Called for each code of a video, which has its place in the list.
using HowFarOf = std::function<void(std::size_t video, std::int64_t done, std::int64_t total)>;

/// Returns the codes (T, H, W) of each video. Writes a code of each in turn, so that stages of a
/// pipeline have as much to do at a time as there are videos. If ranks share the decoder, a
/// collective: ranks between the first stage of a pipeline and the last one return no codes. Throws
/// Error{usage} if more codes are given than a video has, Stopped when asked to stop.
std::vector<std::vector<std::int32_t>> write_codes(const models::CausalDecoder& decoder,
                                                   std::span<const CodeJob> videos,
                                                   const HowFarOf& how_far = {});

}  // namespace vfm::generate

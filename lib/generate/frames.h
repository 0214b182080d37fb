// Latents to frames.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/tokenizer.h"

namespace vfm::generate {

/// What the tokenizer decodes: (C, frames, height, width), in the tokenizer's own units. Of a
/// discrete tokenizer it is codes, one channel of whole numbers.
struct Latent {
  int channels = 0, frames = 0, height = 0, width = 0;
  std::vector<float> values;
};

/// Gets a clip's frames in order: packed RGB, 8 bits, height * width * 3. What it throws passes.
using FrameSink = std::function<void(std::span<const std::uint8_t> frame)>;

/// Throws Error if the latent holds no clip of frames x height x width pixels, or does
/// not fit the tokenizer: other channels, a value that is not finite, or a code out of
/// range.
void check_latent(const models::VideoTokenizer& tokenizer, const Latent& latent, int frames,
                  int height, int width);

/// Decodes the clip of frames x height x width pixels that `latent` is of, frame by frame as the
/// tokenizer makes them: whole latents may give more, which is cut evenly at the edges, and at the
/// end in time. Throws what check_latent() throws, and Error if the tokenizer's pixels are not
/// finite. Thread-safe.
void decode_frames(const models::VideoTokenizer& tokenizer, const Latent& latent, int frames,
                   int height, int width, const FrameSink& sink);

}  // namespace vfm::generate

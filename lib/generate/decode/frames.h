// Latents to frames.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/tokenizer.h"

namespace vfm::generate {

/// The tokenizer's input for decoding: (C, frames, height, width), in the tokenizer's units. For a
/// discrete tokenizer the values are codes: one channel of whole numbers.
struct Latent {
  int channels = 0, frames = 0, height = 0, width = 0;
  std::vector<float> values;
};

/// Receives a clip's frames in order: packed RGB, 8 bits, height * width * 3 bytes. Its exceptions
/// are passed on.
using FrameSink = std::function<void(std::span<const std::uint8_t> frame)>;

/// Throws Error if the latent does not give a clip of frames x height x width pixels. Also throws
/// Error if it does not fit the tokenizer: wrong channels, a value that is not finite, a code out
/// of range, or more data than the tokenizer's memory limit allows.
void check_latent(const models::VideoTokenizer& tokenizer, const Latent& latent, int frames,
                  int height, int width);

/// Decodes `latent` to its clip of frames x height x width pixels, frame by frame as the tokenizer
/// makes them. Excess pixels are cut evenly at the edges, excess frames at the end. Throws what
/// check_latent() throws, and Error if the tokenizer's pixels are not finite. Thread-safe.
void decode_frames(const models::VideoTokenizer& tokenizer, const Latent& latent, int frames,
                   int height, int width, const FrameSink& sink);

}  // namespace vfm::generate

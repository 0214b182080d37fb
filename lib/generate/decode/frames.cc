// SPDX-License-Identifier: Apache-2.0
#include "generate/decode/frames.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "base/stop.h"

namespace vfm::generate {
namespace {

std::vector<std::int32_t> codes_of(const Latent& latent) {
  std::vector<std::int32_t> codes;
  for (const float value : latent.values)
    codes.push_back(static_cast<std::int32_t>(value));
  return codes;
}

}  // namespace

void check_latent(const models::VideoTokenizer& tokenizer, const Latent& latent, int frames,
                  int height, int width) {
  const int vocabulary = tokenizer.vocabulary();
  if (latent.channels != (vocabulary > 0 ? 1 : tokenizer.channels()))
    fail("a latent of {} channels is not for the tokenizer {}", latent.channels, tokenizer.name());
  for (const float value : latent.values) {
    if (!std::isfinite(value)) fail("the latent has a value that is not a number");
    if (vocabulary > 0 &&
        !(value >= 0 && value < static_cast<float>(vocabulary) && value == std::floor(value)))
      fail("{} is not one of {} codes", value, vocabulary);
  }
  const std::int64_t time = tokenizer.time_factor(), space = tokenizer.space_factor();
  if (1 + (latent.frames - 1) * time < frames || latent.height * space < height ||
      latent.width * space < width)
    fail("a latent of {} x {} x {} x {} holds no clip of {} of {}x{}: tokenizer {}",
         latent.channels, latent.frames, latent.height, latent.width, counted(frames, "frame"),
         width, height, tokenizer.name());
  tokenizer.check_memory(false, latent.frames, latent.height, latent.width, 1);
}

void decode_frames(const models::VideoTokenizer& tokenizer, const Latent& latent, int frames,
                   int height, int width, const FrameSink& sink) {
  check_latent(tokenizer, latent, frames, height, width);
  const int full_height = latent.height * tokenizer.space_factor();
  const int full_width = latent.width * tokenizer.space_factor();
  const int top = (full_height - height) / 2, left = (full_width - width) / 2;
  std::vector<std::uint8_t> frame(static_cast<std::size_t>(3) * height * width);
  const auto convert = [&](std::span<const float> planes, int count, int t) {
    std::size_t at = 0;
    for (int row = 0; row < height; ++row) {
      for (int column = 0; column < width; ++column) {
        for (int channel = 0; channel < 3; ++channel) {
          const std::size_t plane = static_cast<std::size_t>(channel) * count + t;
          const float value =
              planes[(plane * full_height + top + row) * full_width + left + column];
          const float byte = std::clamp((value + 1) * 127.5f, 0.0f, 255.0f);  // NaN stays NaN
          if (std::isnan(byte))
            fail(
                "the tokenizer '{}' makes values that are not finite: the tokenizer or the latent "
                "is damaged",
                tokenizer.config().path.empty() ? tokenizer.name() : tokenizer.config().path);
          frame[at++] = static_cast<std::uint8_t>(std::lround(byte));
        }
      }
    }
  };
  check_stop();
  int done = 0;
  const auto hand_over = [&](std::span<const float> planes, int count) {
    for (int t = 0; t < count && done < frames; ++t, ++done) {
      check_stop();
      convert(planes, count, t);
      sink(frame);
    }
  };
  std::vector<float> of_codes;
  if (tokenizer.vocabulary() > 0) of_codes = tokenizer.latent_of_codes(codes_of(latent));
  tokenizer.decode_stream(tokenizer.vocabulary() > 0 ? of_codes : latent.values, latent.frames,
                          latent.height, latent.width, hand_over);
}

}  // namespace vfm::generate

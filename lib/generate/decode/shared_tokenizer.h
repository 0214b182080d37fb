// A tokenizer whose frames several ranks decode together. The rank that writes the clip uses it
// like any other tokenizer.
//
// Thread-safety: decode_stream() on the thread that made the World; the rest as the tokenizer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "dist/group.h"
#include "models/tokenizer.h"

namespace vfm::generate {

class SharedTokenizer final : public models::VideoTokenizer {
 public:
  /// Makes the other ranks of the group call decode_together() with the same latents.
  using Call =
      std::function<void(std::span<const float> latents, int frames, int height, int width)>;
  /// Made on rank 0 of the group. All three arguments must outlive this object.
  SharedTokenizer(const VideoTokenizer& own, dist::Group& ranks, Call call)
      : own_(own), ranks_(ranks), call_(std::move(call)) {}

  int channels() const override { return own_.channels(); }
  int time_factor() const override { return own_.time_factor(); }
  int space_factor() const override { return own_.space_factor(); }
  std::vector<float> encode(std::span<const float> pixels, int frames, int height,
                            int width) const override {
    return own_.encode(pixels, frames, height, width);
  }
  std::vector<float> decode(std::span<const float> latents, int frames, int height,
                            int width) const override {
    return own_.decode(latents, frames, height, width);
  }
  void decode_stream(std::span<const float> latents, int frames, int height, int width,
                     const FrameSink& sink) const override {
    call_(latents, frames, height, width);
    own_.decode_together(ranks_, latents, frames, height, width, sink);
  }
  /// The memory of decoding is shared by all ranks.
  void check_memory(bool encodes, int frames, int height, int width, int) const override {
    own_.check_memory(encodes, frames, height, width, encodes ? 1 : ranks_.size());
  }
  int vocabulary() const override { return own_.vocabulary(); }
  std::vector<std::int32_t> encode_codes(std::span<const float> pixels, int frames, int height,
                                         int width) const override {
    return own_.encode_codes(pixels, frames, height, width);
  }
  std::vector<float> latent_of_codes(std::span<const std::int32_t> codes) const override {
    return own_.latent_of_codes(codes);
  }
  std::optional<models::LatentScale> statistics() const override { return own_.statistics(); }
  models::TokenizerConfig config() const override { return own_.config(); }

 private:
  const VideoTokenizer& own_;
  dist::Group& ranks_;
  const Call call_;
};

}  // namespace vfm::generate

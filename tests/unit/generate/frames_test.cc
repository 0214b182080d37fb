// From latents to frames of 8 bits, whatever pieces the tokenizer hands over.
// SPDX-License-Identifier: Apache-2.0
#include "generate/decode/frames.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

/// Four codes, each a grey of 2 x 2 pixels, of which a frame at a time is decoded.
class Greys final : public models::VideoTokenizer {
 public:
  int channels() const override { return 1; }
  int time_factor() const override { return 1; }
  int space_factor() const override { return 2; }
  int vocabulary() const override { return 4; }
  std::vector<float> encode(std::span<const float>, int, int, int) const override {
    fail("not encoded here");
  }
  std::vector<float> decode(std::span<const float>, int, int, int) const override {
    fail("all at once is too much");
  }
  std::vector<float> latent_of_codes(std::span<const std::int32_t> codes) const override {
    std::vector<float> greys;
    for (const std::int32_t code : codes)
      greys.push_back(static_cast<float>(code) / 1.5f - 1);
    return greys;
  }
  void decode_stream(std::span<const float> latents, int frames, int height, int width,
                     const FrameSink& sink) const override {
    REQUIRE(height * width == 1);
    for (int t = 0; t < frames; ++t)
      sink(std::vector<float>(12, latents[static_cast<std::size_t>(t)]), 1);
  }
  models::TokenizerConfig config() const override { return {}; }
};

std::vector<int> first_bytes(const Latent& latent, int frames, int height, int width) {
  std::vector<int> bytes;
  decode_frames(Greys(), latent, frames, height, width, [&](std::span<const std::uint8_t> frame) {
    CHECK(frame.size() == static_cast<std::size_t>(3 * height * width));
    bytes.push_back(frame[0]);
  });
  return bytes;
}

}  // namespace

TEST_CASE("codes become frames as the tokenizer makes them, never all at once") {
  const Latent latent{1, 4, 1, 1, {0, 3, 1, 2}};
  CHECK(first_bytes(latent, 4, 2, 2) == std::vector<int>{0, 255, 85, 170});
  CHECK(first_bytes(latent, 2, 2, 1) == std::vector<int>{0, 255});
}

TEST_CASE("latents that hold no such clip, or no codes, are refused") {
  const Latent latent{1, 4, 1, 1, {0, 3, 1, 2}};
  CHECK_NOTHROW(check_latent(Greys(), latent, 4, 2, 2));
  CHECK_THROWS_AS(check_latent(Greys(), latent, 5, 2, 2), Error);
  CHECK_THROWS_AS(check_latent(Greys(), latent, 4, 3, 2), Error);
  CHECK_THROWS_AS(check_latent(Greys(), latent, 4, 2, 3), Error);
  for (const float wrong : {4.f, -1.f, 0.5f})
    CHECK_THROWS_AS(check_latent(Greys(), {1, 1, 1, 1, {wrong}}, 1, 2, 2), Error);
  CHECK_THROWS_AS(check_latent(Greys(), {2, 1, 1, 1, {0, 0}}, 1, 2, 2), Error);
}

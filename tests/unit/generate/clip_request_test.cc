// Which clips a model can make, and the latents that they are cut from.
// SPDX-License-Identifier: Apache-2.0
#include "generate/request/clip_request.h"

#include <array>
#include <catch2/catch.hpp>

#include "base/error.h"
#include "models/dit/architecture.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::generate;
using Catch::Contains;

namespace {

ModelShape shape() {
  ModelShape shape;
  shape.channels = shape.in_channels = shape.out_channels = 16;
  shape.time_factor = 8, shape.space_factor = 8;
  shape.patch = {1, 2, 2};
  shape.text_width = shape.encoder_width = 4;
  return shape;
}

ClipRequest request(int frames, int height, int width) {
  ClipRequest request;
  request.frames = frames, request.height = height, request.width = width;
  request.fps = 24;
  return request;
}

}  // namespace

TEST_CASE("a latent holds the clip, in whole patches") {
  const auto latent = [](const ModelShape& shape, int frames, int height, int width) {
    const Extents size = shape.latent_of(request(frames, height, width));
    const Extents pixels = shape.pixels_of(size);
    CHECK((pixels.frames >= frames && pixels.height >= height && pixels.width >= width));
    return std::array{size.frames, size.height, size.width};
  };
  CHECK(latent(shape(), 1, 16, 32) == std::array{1, 2, 4});
  CHECK(latent(shape(), 2, 17, 33) == std::array{2, 4, 6});
  CHECK(latent(shape(), 9, 1, 1) == std::array{2, 2, 2});
  CHECK(latent(shape(), 10, 480, 854) == std::array{3, 60, 108});
  ModelShape wide = shape();
  wide.patch = {2, 1, 1};
  CHECK(latent(wide, 1, 8, 9) == std::array{2, 1, 2});
  CHECK(latent(wide, 17, 8, 8) == std::array{4, 1, 1});
}

TEST_CASE("sizes at the limits, and beyond") {
  const auto refused = [](const ClipRequest& clip) {
    return usage_error([&] { shape().check_size(clip); });
  };
  CHECK_NOTHROW(shape().check_size(request(1, 1, 1)));
  CHECK_NOTHROW(shape().check_size(request(100000, 16, 16)));
  CHECK_NOTHROW(shape().check_size(request(1, kLargestSide, kLargestSide)));
  CHECK_THAT(refused(request(100001, 16, 16)), Contains("1 to 100000 frames"));
  CHECK_THAT(refused(request(0, 16, 16)), Contains("a clip of 0 frames of 16x16 is not possible"));
  CHECK_THAT(refused(request(1, kLargestSide + 1, 16)), Contains("sides of 1 to 16384 pixels"));
  CHECK_THAT(refused(request(1, 16, kLargestSide + 1)), Contains("sides of 1 to 16384 pixels"));
  CHECK_THAT(refused(request(1000, kLargestSide, kLargestSide)), Contains("latents, more than"));
  ClipRequest still = request(1, 16, 16);
  still.fps = -1;
  CHECK_THAT(refused(still), Contains("must be positive"));
}

TEST_CASE("text, noise and given frames fit the model, or are refused by name") {
  const auto refused = [](const ModelShape& model, const ClipRequest& clip) {
    return usage_error([&] { model.check(clip); });
  };
  ClipRequest clip = request(9, 16, 16);
  clip.prompt = "a fox";
  CHECK_NOTHROW(shape().check(clip));
  ModelShape silent = shape();
  silent.encoder_width = 0;
  CHECK_THAT(refused(silent, clip), Contains("trained without text"));
  ModelShape foreign = shape();
  foreign.foreign_text = true;
  CHECK_THAT(refused(foreign, clip), Contains("'embedding' of a JSON line"));
  auto embedding = std::make_shared<text::TokenEmbeddings>();
  embedding->tokens = 1, embedding->dim = 4, embedding->values = {1, 2, 3, 4};
  clip.embedding = embedding;
  CHECK_NOTHROW(foreign.check(clip));
  clip.negative = "rain";
  CHECK_THAT(refused(foreign, clip), Contains("'negative_embedding' of a JSON line"));
  clip.negative_embedding = embedding;
  CHECK_NOTHROW(foreign.check(clip));
  foreign.text_width = 5;
  CHECK_THAT(refused(foreign, clip), Contains("is 4 wide, and the model's text 5"));

  clip = request(9, 16, 16);
  clip.noise = std::make_shared<std::vector<float>>(16 * 2 * 2 * 2);
  CHECK_NOTHROW(shape().check(clip));
  clip.width = 17;
  CHECK_THAT(refused(shape(), clip), Contains("the noise has 128 values"));
  ModelShape writer = shape();
  writer.autoregressive = true;
  CHECK_THAT(refused(writer, clip), Contains("a first noise is for diffusion models"));

  clip = request(17, 16, 16);
  auto given = std::make_shared<GivenFrames>();
  given->frames = 9, given->pixels.resize(std::size_t{3} * 9 * 16 * 16);
  clip.given = given;
  CHECK_THAT(refused(shape(), clip), Contains("not a video-to-world model"));
  ModelShape world = shape();
  world.given = models::GivenFramesBy::mark;
  CHECK_NOTHROW(world.check(clip));
  clip.frames = 9;
  CHECK_THAT(refused(world, clip), Contains("leave nothing to make"));
  clip.frames = 17, clip.height = 32;
  CHECK_THAT(refused(world, clip), Contains("13824 were expected"));
  given->frames = 8, clip.height = 16;
  CHECK_THAT(refused(world, clip), Contains("give 1, 9, 17"));
}

TEST_CASE("a model that begins with a picture takes one frame") {
  ModelShape video = shape();
  video.given = models::GivenFramesBy::clean_time;
  ClipRequest clip = request(17, 16, 16);
  CHECK_NOTHROW(video.check(clip));
  auto given = std::make_shared<GivenFrames>();
  given->frames = 1, given->pixels.resize(std::size_t{3} * 16 * 16);
  clip.given = given;
  CHECK_NOTHROW(video.check(clip));
  given->frames = 9, given->pixels.resize(std::size_t{3} * 9 * 16 * 16);
  CHECK_THAT(usage_error([&] { video.check(clip); }), Contains("the model begins with 1"));
  // Another one cannot do without.
  models::NetworkConfig wan = models::default_config(models::find_architecture("wan"));
  wan.in_channels = 36;
  ModelShape animate = shape();
  animate.take(wan, {});
  clip.given = nullptr;
  CHECK_THAT(usage_error([&] { animate.check(clip); }),
             Contains("the model only continues videos"));
  // That it can, the network does not say.
  wan.in_channels = 16;
  animate.take(wan, {});
  CHECK_FALSE(animate.video_to_world());
  models::ModelFacts facts;
  facts.clean_time = true;
  animate.take(wan, facts);
  CHECK(animate.video_to_world());
}

TEST_CASE("the parts of a model fit each other") {
  ModelShape writer = shape();
  writer.autoregressive = true;
  writer.codes = writer.vocabulary = 64;
  CHECK_NOTHROW(writer.check_parts({}, "run"));
  writer.vocabulary = 63;
  CHECK_THROWS_WITH(writer.check_parts({}, "run"),
                    Contains("'run' does not fit together") && Contains("63 and 64 codes"));
  writer.vocabulary = 64, writer.encoder_width = 5;
  CHECK_THROWS_WITH(writer.check_parts({}, "run"), Contains("widths 5 and 4"));
  writer.encoder_width = 0;  // it reads no text
  CHECK_NOTHROW(writer.check_parts({}, "run"));
}

// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/generator.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "models/dit/dit.h"
#include "models/tokenizer.h"
#include "text/encoder.h"

using namespace vfm;
using namespace vfm::generate;
using models::Sampler;

namespace {

constexpr int kChannels = 6, kTextWidth = 16;

Json train_json() {
  return {
      {"tokenizer", {{"name", "builtin:wavelet"}, {"channels", kChannels}}},
      {"text_encoder", {{"name", "builtin:hash"}, {"dim", kTextWidth}}},
      {"latent_scale",
       {{"mean", std::vector<double>(kChannels, 0.1)}, {"std", std::vector<double>(kChannels, 1)}}},
      {"trained", {{"frames", 2}, {"height", 4}, {"width", 4}, {"fps", {12.0}}}},
      {"step", 1}};
}

models::LoadedModel tiny_model(const Json& train = train_json(), int head_dim = 12,
                               DType compute = DType::f32) {
  models::NetworkConfig config;
  config.in_channels = config.out_channels = kChannels;
  config.num_attention_heads = 2;
  config.attention_head_dim = head_dim;
  config.num_layers = 1;
  config.text_embed_dim = kTextWidth;
  config.own<models::DitFields>().adaln_lora_dim = 4;
  config.max_size = {2, 4, 4};
  models::LoadedModel model{models::make_network(config, 1, compute),
                            models::ModelFacts::from_json(train, "train.json"),
                            "run/checkpoints/step-1", true};
  // The matrices that begin at zero would hide the text: all weights random.
  std::uint64_t key = 0;
  for (nn::Parameter* parameter : model.network->parameters()) {
    const Tensor values(parameter->shape());
    Random(3, Purpose::test, 0, ++key).fill_normal(values.floats());
    for (float& value : values.floats())
      value *= 0.2f;
    parameter->write(values);
  }
  return model;
}

ClipRequest small_request() {
  ClipRequest request;
  request.prompt = "a red circle";
  request.frames = 9;
  request.height = request.width = 32;
  request.fps = 12;
  return request;
}

SampleOptions quick() {
  SampleOptions options;
  options.steps = 3;
  return options;
}

struct Clip {
  int frames, height, width;
  std::vector<std::uint8_t> pixels;
};

Clip make(const Generator& generator, const ClipRequest& request, const SampleOptions& options) {
  Clip clip{0, request.height, request.width, {}};
  const Latent latent = generator.denoise(request, options);
  decode_frames(generator.tokenizer(), latent, request.frames, request.height, request.width,
                [&](std::span<const std::uint8_t> frame) {
                  ++clip.frames;
                  clip.pixels.insert(clip.pixels.end(), frame.begin(), frame.end());
                });
  return clip;
}

std::string error_of(const Json& train) {
  try {
    const Generator generator(tiny_model(train));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what most videos were like is the default, the largest extents bound the positions",
          "[generator]") {
  Json train = train_json();
  train["trained"]["usual"] = {{"frames", 1}, {"height", 2}, {"width", 4}};
  train["trained"]["fps"] = {30.0, 12.0};
  const Generator generator(tiny_model(train));
  CHECK(generator.usual().frames == 1);
  CHECK(generator.usual().height == 16);
  CHECK(generator.usual().width == 32);
  CHECK(generator.facts().fps == 30);
  CHECK(generator.largest().frames == 9);
  CHECK(generator.largest().height == 32);
  CHECK_FALSE(generator.beyond_training(small_request()));
}

TEST_CASE("a clip has the size that was asked for, whole patches or not", "[generator]") {
  const Generator generator(tiny_model());
  CHECK(generator.usual().frames == 9);
  CHECK(generator.usual().height == 32);
  CHECK(generator.facts().fps == 12);
  for (const auto& [frames, height, width] :
       {std::array{9, 32, 32}, std::array{1, 32, 32}, std::array{5, 20, 31}, std::array{2, 1, 1}}) {
    ClipRequest request = small_request();
    request.frames = frames, request.height = height, request.width = width;
    CHECK_FALSE(generator.beyond_training(request));
    const Clip clip = make(generator, request, quick());
    CHECK(clip.frames == frames);
    CHECK(clip.height == height);
    CHECK(clip.width == width);
    CHECK(clip.pixels.size() == std::size_t{3} * frames * height * width);
  }
}

TEST_CASE("a clip larger and longer than trained can be made", "[generator]") {
  const Generator generator(tiny_model());
  ClipRequest request = small_request();
  request.frames = 17, request.height = 48, request.width = 40;
  CHECK(generator.beyond_training(request));
  CHECK(make(generator, request, quick()).pixels.size() == std::size_t{3} * 17 * 48 * 40);
}

TEST_CASE("cutting does not change what is left", "[generator]") {
  const Generator generator(tiny_model());
  ClipRequest request = small_request();
  const Clip whole = make(generator, request, quick());
  request.width = 24;
  request.frames = 7;
  const Clip cut = make(generator, request, quick());
  for (int frame = 0; frame < 7; ++frame)
    for (int row = 0; row < 32; ++row)
      for (int i = 0; i < 3 * 24; ++i)
        REQUIRE(cut.pixels[(frame * 32 + row) * 3 * 24 + i] ==
                whole.pixels[(frame * 32 + row) * 3 * 32 + 3 * 4 + i]);
}

TEST_CASE("a clip depends on prompt, seed and options, not on threads", "[generator]") {
  const Generator generator(tiny_model());
  const ClipRequest request = small_request();
  const auto pixels = [&](const ClipRequest& asked, const SampleOptions& options) {
    return make(generator, asked, options).pixels;
  };
  const auto first = pixels(request, quick());
  CHECK(pixels(request, quick()) == first);
  std::vector<std::vector<std::uint8_t>> many(4);
  std::vector<std::thread> threads;
  for (auto& one : many)
    threads.emplace_back([&] { one = pixels(request, quick()); });
  for (std::thread& thread : threads)
    thread.join();
  for (const auto& one : many)
    CHECK(one == first);

  ClipRequest other = request;
  other.seed = 1;
  CHECK(pixels(other, quick()) != first);
  other = request;
  other.prompt = "a blue square";
  CHECK(pixels(other, quick()) != first);
  SampleOptions heun = quick();
  heun.sampler = Sampler::heun;
  CHECK(pixels(request, heun) != first);
}

TEST_CASE("guidance is c + g (c - u)", "[generator]") {
  const Generator generator(tiny_model());
  ClipRequest request = small_request();
  SampleOptions none = quick(), strong = quick();
  none.guidance = 0;
  strong.guidance = 3;
  const auto plain = make(generator, request, none).pixels;
  CHECK(make(generator, request, strong).pixels != plain);
  // Against itself as negative prompt, nothing is left to push away from, whatever g.
  request.negative = request.prompt;
  CHECK(make(generator, request, strong).pixels == plain);
  // Without guidance the negative prompt says nothing.
  request.negative = "noise";
  CHECK(make(generator, request, none).pixels == plain);
  CHECK(make(generator, request, strong).pixels != plain);
  // At g = -1 only u is left: the clip of the negative prompt, from the noise of the prompt.
  SampleOptions only = quick();
  only.guidance = -1;
  request.negative.clear();
  const auto unguided = make(generator, request, only).pixels;
  CHECK(unguided != plain);
}

TEST_CASE("empty prompts and any script are prompts", "[generator]") {
  const Generator generator(tiny_model());
  for (const char* prompt : {"", "   ", "赤い丸", "دائرة حمراء", "\xff\xfe broken"}) {
    ClipRequest request = small_request();
    request.prompt = prompt;
    CHECK_NOTHROW(make(generator, request, quick()));
  }
}

TEST_CASE("impossible requests are refused", "[generator]") {
  const Generator generator(tiny_model());
  const auto refused = [&](auto change) {
    ClipRequest request = small_request();
    SampleOptions options = quick();
    change(request, options);
    CHECK_THROWS_AS(generator.denoise(request, options), Error);
  };
  refused([](ClipRequest& r, SampleOptions&) { r.frames = 0; });
  refused([](ClipRequest& r, SampleOptions&) { r.width = -1; });
  refused([](ClipRequest& r, SampleOptions&) { r.height = 1 << 30; });
  refused([](ClipRequest& r, SampleOptions&) { r.fps = 0; });
  refused([](ClipRequest& r, SampleOptions&) { r.fps = std::nan(""); });
  refused([](ClipRequest&, SampleOptions& o) { o.steps = 0; });
  refused([](ClipRequest&, SampleOptions& o) { o.sampler = Sampler::flow; });
  refused([](ClipRequest&, SampleOptions& o) { o.guidance = std::nan(""); });
  refused([](ClipRequest&, SampleOptions& o) { o.sigma_min = 100; });
}

TEST_CASE("a checkpoint that cannot generate says what it lacks", "[generator]") {
  for (const char* name : {"tokenizer", "text_encoder", "latent_scale", "trained"}) {
    Json train = train_json();
    train.erase(name);
    CHECK(error_of(train).find(name) != std::string::npos);
  }
  Json train = train_json();
  train["latent_scale"]["mean"] = {0.0};
  train["latent_scale"]["std"] = {1.0};
  CHECK(error_of(train).find("fit together") != std::string::npos);
  train = train_json();
  train["text_encoder"]["dim"] = 2 * kTextWidth;
  CHECK(error_of(train).find("fit together") != std::string::npos);
}

TEST_CASE("FP8 is measured on a clip's first output, and changes what is generated",
          "[generator]") {
  Generator generator(tiny_model(train_json(), 64, DType::bf16));
  const ClipRequest request = small_request();
  const auto plain = make(generator, request, quick()).pixels;
  for (const models::Fp8Parts parts : {models::Fp8Parts{true, false}, {true, true}}) {
    const double error = generator.fp8_error(parts, request, quick());
    CHECK(error > 1e-4);
    CHECK(error < 0.3);
    CHECK(generator.fp8_error(parts, request, quick()) == error);
    CHECK(make(generator, request, quick()).pixels == plain);  // measuring leaves it off
    generator.set_fp8(parts);
    const auto low = make(generator, request, quick()).pixels;
    CHECK(low != plain);
    // On any thread: nothing is made on first use.
    std::vector<std::uint8_t> other;
    std::thread([&] { other = make(generator, request, quick()).pixels; }).join();
    CHECK(other == low);
    generator.set_fp8({});
  }
  CHECK(make(generator, request, quick()).pixels == plain);
  ClipRequest impossible = request;
  impossible.frames = 0;
  CHECK_THROWS_AS(generator.fp8_error({true, true}, impossible, quick()), Error);
  Generator narrow(tiny_model());
  CHECK_THROWS_AS(narrow.set_fp8({true, false}), Error);
}

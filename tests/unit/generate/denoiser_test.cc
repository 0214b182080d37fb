// What the network is asked, and what is made of its answers: with a network that remembers.
// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/denoiser.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "base/philox.h"
#include "generate/sampling/generator.h"
#include "models/dit/lora.h"
#include "models/process/process.h"
#include "nn/staged_forward.h"

using namespace vfm;
using namespace vfm::generate;
using models::GivenFramesBy;
using models::Sampler;

namespace {

constexpr int kWidth = 16;  // of the text

/// Answers each sample with a number of its own, and keeps what it was asked.
class Recorder final : public models::DiffusionNetwork {
 public:
  explicit Recorder(int in_channels, int out_channels) {
    config_.in_channels = in_channels;
    config_.out_channels = out_channels;
    config_.text_embed_dim = kWidth;
    config_.max_size = {8, 16, 16};
  }
  const models::NetworkConfig& config() const override { return config_; }
  Device device() const override { return Device::cpu; }
  const nn::ParameterList& parameters() const override { return parameters_; }
  void attach(const std::vector<nn::AdapterShape>&, bool) override {}
  const nn::ParameterList& adapters() const override { return parameters_; }
  void set_recompute(nn::Recompute, bool) override {}
  void set_inference_fp8(models::Fp8Parts) override {}
  void quantize() override {}
  Tensor forward(ops::Tape&, const models::NetworkBatch& batch) const override {
    asked.push_back(batch);
    std::vector<float> answer;
    for (std::size_t i = 0; i < batch.samples.size(); ++i) {
      const models::NetworkSample& s = batch.samples[i];
      answer.insert(answer.end(),
                    static_cast<std::size_t>(config_.out_channels) * s.frames * s.height * s.width,
                    static_cast<float>(i + 1));
    }
    return Tensor::from(answer, {static_cast<std::int64_t>(answer.size())});
  }
  std::unique_ptr<nn::StagedForward> stages(ops::Tape&,
                                            const models::NetworkBatch&) const override {
    return nullptr;
  }
  std::vector<Shape> stream_shapes(const models::NetworkBatch&, std::size_t) const override {
    return {};
  }
  Tensor own_part(const Tensor& values, const models::NetworkBatch&) const override {
    return values;
  }

  mutable std::vector<models::NetworkBatch> asked;

 private:
  models::NetworkConfig config_;
  nn::ParameterList parameters_;
};

Json train_json(int channels) {
  return {
      {"tokenizer", {{"name", "builtin:wavelet"}, {"channels", channels}}},
      {"text_encoder", {{"name", "builtin:hash"}, {"dim", kWidth}}},
      {"latent_scale",
       {{"mean", std::vector<double>(channels, 0.1)}, {"std", std::vector<double>(channels, 1)}}},
      {"trained", {{"frames", 4}, {"height", 4}, {"width", 4}, {"fps", {12.0}}}}};
}

struct Setup {
  Recorder* network;  // owned by the generator
  Generator generator;
};

Setup setup(int in_channels, int out_channels, const Json& train) {
  auto network = std::make_unique<Recorder>(in_channels, out_channels);
  Recorder* known = network.get();
  models::LoadedModel model{std::move(network), models::ModelFacts::from_json(train, "train.json"),
                            "folder", false, DType::f32};
  return {known, Generator(std::move(model))};
}

ClipRequest small(int frames = 17) {
  ClipRequest request;
  request.prompt = "a red circle";
  request.frames = frames;
  request.height = request.width = 16;
  request.fps = 30;
  return request;
}

SampleOptions cosmos(int steps = 4) {
  SampleOptions options;
  options.sampler = Sampler::edm_euler;
  options.steps = steps;
  options.sigma_min = 0.002;
  options.sigma_max = 80;
  options.guidance = 7;
  return options;
}

// A denoiser of one channel and three frames of 1 x 2, the first `given` of which are given.
struct Small {
  explicit Small(int given, SampleOptions options, GivenFramesBy by = GivenFramesBy::mark,
                 int in_channels = 2, double boundary = 0)
      : network(in_channels, 1) {
    DenoiseInput input;
    input.boundary = boundary;
    input.sample.frames = 3;
    input.sample.height = 1;
    input.sample.width = 2;
    input.channels = 1;
    input.texts = {{std::vector<float>(kWidth), 1, kWidth},
                   {std::vector<float>(kWidth), 1, kWidth}};
    input.given_by = by;
    input.given_frames = given;
    const bool whole = by == GivenFramesBy::mask_and_latent;
    input.given.assign(static_cast<std::size_t>(2 * (whole ? 3 : given)), 0.25f);
    denoiser.emplace(clip, std::move(input), options, std::vector<double>{10, 1, 0.1}, 1, 2);
  }
  Recorder network;
  const ClipNetwork clip{network};
  std::optional<Denoiser> denoiser;
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
};

}  // namespace

TEST_CASE("trap 10: the first noise has the standard deviation sigma_max", "[denoiser]") {
  auto [network, generator] = setup(6, 6, train_json(6));
  ClipRequest request = small();
  const Latent size = generator.latent_of(request);
  const std::size_t n = 6u * size.frames * size.height * size.width;
  std::vector<float> noise(n);
  for (std::size_t i = 0; i < n; ++i)
    noise[i] = static_cast<float>(i % 7) - 3;
  request.noise = std::make_shared<const std::vector<float>>(noise);
  generator.denoise(request, cosmos());
  const auto input = network->asked.front().latents.floats();
  const double in = models::Process().at(80).in;
  for (std::size_t i = 0; i < n; ++i)
    REQUIRE(input[i] == Approx(in * 80 * noise[i]));
  // Drawn, it is of unit variance times the same.
  request.noise = nullptr;
  network->asked.clear();
  generator.denoise(request, cosmos());
  double squares = 0;
  for (const float value : network->asked.front().latents.floats().first(n))
    squares += double{value} * value;
  CHECK(std::sqrt(squares / static_cast<double>(n)) == Approx(in * 80).epsilon(0.1));
  request.noise = std::make_shared<const std::vector<float>>(n - 1);
  CHECK_THROWS_AS(generator.denoise(request, cosmos()), Error);
}

TEST_CASE("trap 12: prompts are filled with zero vectors that are attended to", "[denoiser]") {
  Json train = train_json(6);
  train["text_padding"] = 12;
  auto [network, generator] = setup(6, 6, train);
  generator.denoise(small(), cosmos());
  const models::NetworkBatch& batch = network->asked.front();
  REQUIRE(batch.samples.size() == 2);
  CHECK(batch.samples[0].text_tokens == 12);
  CHECK(batch.samples[1].text_tokens == 12);
  const auto rows = batch.text.floats();
  const auto is_zero = [&](std::size_t row) {
    for (std::size_t i = 0; i < kWidth; ++i)
      if (rows[row * kWidth + i] != 0) return false;
    return true;
  };
  CHECK_FALSE(is_zero(0));
  CHECK(is_zero(11));
  for (std::size_t row = 12; row < 24; ++row)
    CHECK(is_zero(row));  // no negative prompt
}

TEST_CASE("trap 23: the rate that is asked for is the one that times the motion", "[denoiser]") {
  auto [network, generator] = setup(6, 6, train_json(6));
  ClipRequest request = small();
  for (const double fps : {30.0, 24.0}) {
    request.fps = fps;
    generator.denoise(request, cosmos());
    CHECK(network->asked.back().samples[0].fps == static_cast<float>(fps));
  }
  request.frames = 1;
  generator.denoise(request, cosmos());
  CHECK(network->asked.back().samples[0].fps == 0);
}

TEST_CASE("trap 5: the time input is rounded to bf16 where the network saw it so", "[denoiser]") {
  Json train = train_json(6);
  auto [exact, plain] = setup(6, 6, train);
  train["round_time"] = true;
  auto [rounded, other] = setup(6, 6, train);
  plain.denoise(small(), cosmos());
  other.denoise(small(), cosmos());
  const std::vector<double> levels = noise_levels(cosmos());
  bool differs = false;
  for (std::size_t i = 0; i < 3; ++i) {
    const float time = static_cast<float>(0.25 * std::log(levels[i]));
    CHECK(exact->asked[i].samples[0].c_noise == time);
    CHECK(rounded->asked[i].samples[0].c_noise == bfloat16_to_float(float_to_bfloat16(time)));
    differs = differs || rounded->asked[i].samples[0].c_noise != time;
  }
  CHECK(differs);
}

TEST_CASE("fault 11, trap 9: the estimate is c + g (c - u)", "[denoiser]") {
  SampleOptions options = cosmos();
  options.guidance = 3;
  Small small(0, options);
  std::vector<double> x0(6);
  small.denoiser->estimate(small.x, 1, x0);
  const models::ProcessLevel c = models::Process().at(1);
  for (std::size_t i = 0; i < 6; ++i) {
    const double with = c.skip * small.x[i] + c.out, without = c.skip * small.x[i] + c.out * 2;
    CHECK(x0[i] == Approx(with + 3 * (with - without)));
  }
  // No frame is given: the mask is zero.
  const auto input = small.network.asked[0].latents.floats();
  REQUIRE(input.size() == 2 * 12);
  for (std::size_t i = 6; i < 12; ++i)
    CHECK(input[i] == 0);
}

TEST_CASE("of two networks the one of the noise level is asked, with its own guidance",
          "[denoiser]") {
  SampleOptions options = cosmos();
  options.guidance = 3;
  options.guidance_low = 0.5;
  const auto estimates = [&](double boundary) {
    Small small(0, options, GivenFramesBy::mark, 2, boundary);
    std::vector<double> x0(6);
    for (const double sigma : {10.0, 1.0, 0.1}) {
      small.denoiser->estimate(small.x, sigma, x0);
      const models::NetworkBatch& asked = small.network.asked.back();
      const bool low = sigma < boundary;
      CHECK(asked.network == (low ? 1 : 0));
      const double guidance = low ? *options.guidance_low : options.guidance;
      CHECK(asked.samples.size() == (guidance == 0 ? 1 : 2));
      CHECK(asked.text.size(0) == static_cast<std::int64_t>(asked.samples.size()));
      // The network answers 1 for the prompt and 2 for the negative one.
      const models::ProcessLevel c = models::Process().at(sigma);
      CHECK(x0[4] == Approx(c.skip * small.x[4] + c.out - guidance * c.out));
    }
  };
  for (const double boundary : {0.0, 0.5, 1.0, 5.0, 100.0})
    estimates(boundary);
  options.guidance_low = 0;  // no negative prompt at low levels
  estimates(1.0);
  options.guidance = 0, options.guidance_low = 2;
  estimates(5.0);
}

TEST_CASE("given frames go in with little noise and a mark, and come out as they are",
          "[denoiser]") {
  SampleOptions options = cosmos();
  options.augment_sigma = 0;
  Small small(1, options);
  std::vector<double> x0(6);
  small.denoiser->estimate(small.x, 10, x0);
  const auto input = small.network.asked[0].latents.floats();
  const double in = models::Process().at(10).in;
  for (const std::size_t half : {0u, 12u}) {
    // Scaled as at the noise level 0, whatever the level of the others.
    CHECK(input[half] == Approx(0.25 / models::kSigmaData));
    CHECK(input[half + 1] == Approx(0.25 / models::kSigmaData));
    for (std::size_t i = 2; i < 6; ++i)
      CHECK(input[half + i] == Approx(in * small.x[i]));
    CHECK((input[half + 6] == 1 && input[half + 7] == 1));
    for (std::size_t i = 8; i < 12; ++i)
      CHECK(input[half + i] == 0);
  }
  CHECK((x0[0] == 0.25 && x0[1] == 0.25));
  CHECK(x0[2] != 0.25);
}

TEST_CASE("noise on given frames is their own, by level and half, and ends at its own level",
          "[denoiser]") {
  SampleOptions options = cosmos();
  options.augment_sigma = 0.5;
  Small small(1, options);
  std::vector<double> x0(6);
  const auto ask = [&](double sigma) {
    small.denoiser->estimate(small.x, sigma, x0);
    const auto input = small.network.asked.back().latents.floats();
    return std::vector<float>(input.begin(), input.end());
  };
  const auto high = ask(10), again = ask(10), low = ask(1);
  CHECK(high == again);
  CHECK(high[0] != high[12]);
  CHECK(high[0] != low[0]);
  CHECK(std::abs(high[0] - 0.25 * std::sqrt(2.0)) < 0.5 * 5 * std::sqrt(2.0));  // c_in(0.5)
  CHECK((x0[0] == 0.25 && x0[1] == 0.25));
  const auto last = ask(0.1);  // below: denoised as the others, but still marked
  CHECK(last[0] == Approx(models::Process().at(0.1).in * small.x[0]));
  CHECK((last[6] == 1 && last[8] == 0));
  CHECK(x0[0] != 0.25);
  CHECK_THROWS_AS(ask(2), Error);
}

TEST_CASE("given frames of noise level 0 are the state and the estimate themselves", "[denoiser]") {
  SampleOptions options;
  options.process = models::Process::flow;
  options.sampler = Sampler::flow;
  options.sigmas = {1, 0.5, 0.1};
  Small small(1, options, GivenFramesBy::clean_time, 1);
  std::vector<double> x0(6);
  small.denoiser->estimate(small.x, 0.1, x0);
  const models::NetworkBatch& batch = small.network.asked[0];
  CHECK((batch.samples[0].clean_frames == 1 && batch.samples[1].clean_frames == 1));
  CHECK(batch.samples[0].c_noise == Approx(100));
  const auto input = batch.latents.floats();
  REQUIRE(input.size() == 12);
  for (const std::size_t half : {0u, 6u}) {
    CHECK((input[half] == 0.25f && input[half + 1] == 0.25f));
    for (std::size_t i = 2; i < 6; ++i)
      CHECK(input[half + i] == small.x[i]);
  }
  CHECK((x0[0] == 0.25 && x0[1] == 0.25));
  CHECK(x0[2] != 0.25);
}

TEST_CASE("a latent of given frames and grey goes in behind a mask, and nothing is overlaid",
          "[denoiser]") {
  SampleOptions options;
  options.process = models::Process::flow;
  options.sampler = Sampler::flow;
  Small small(1, options, GivenFramesBy::mask_and_latent, 6);
  std::vector<double> x0(6);
  small.denoiser->estimate(small.x, 0.1, x0);
  const models::NetworkBatch& batch = small.network.asked[0];
  CHECK(batch.samples[0].clean_frames == 0);
  const auto input = batch.latents.floats();
  REQUIRE(input.size() == 2 * 36);
  for (const std::size_t half : {0u, 36u}) {
    for (std::size_t i = 0; i < 6; ++i)
      CHECK(input[half + i] == small.x[i]);
    for (std::size_t i = 6; i < 30; ++i)
      CHECK(input[half + i] == (i % 6 < 2 ? 1 : 0));
    for (std::size_t i = 30; i < 36; ++i)
      CHECK(input[half + i] == 0.25f);
  }
  CHECK((x0[0] != 0.25 && x0[1] != 0.25));
}

TEST_CASE("video to world: a clip begins with the frames that it was given", "[denoiser]") {
  auto [network, generator] = setup(7, 6, train_json(6));
  CHECK(generator.video_to_world());
  ClipRequest request = small(17);
  auto given = std::make_shared<GivenFrames>();
  given->frames = 9;
  given->pixels.assign(3u * 9 * 16 * 16, 0.5f);
  request.given = given;
  const Latent latent = generator.denoise(request, cosmos());
  REQUIRE(latent.frames == 3);
  const std::vector<float> expected = generator.tokenizer().encode(given->pixels, 9, 16, 16);
  const std::size_t plane = static_cast<std::size_t>(latent.height) * latent.width;
  for (std::size_t c = 0; c < 6; ++c)
    for (std::size_t i = 0; i < 2 * plane; ++i)
      // edm-euler stops at sigma_min, where some noise is left.
      CHECK(latent.values[c * 3 * plane + i] == Approx(expected[c * 2 * plane + i]).margin(0.05));
  const auto input = network->asked[0].latents.floats();
  for (std::size_t i = 0; i < 3 * plane; ++i)
    CHECK(input[6 * 3 * plane + i] == (i < 2 * plane ? 1 : 0));

  const auto refused = [&generator = generator, &request](int frames, std::size_t values) {
    auto other = std::make_shared<GivenFrames>();
    other->frames = frames;
    other->pixels.resize(values);
    ClipRequest wrong = request;
    wrong.given = other;
    CHECK_THROWS_AS(generator.denoise(wrong, cosmos()), Error);
  };
  refused(17, 3u * 17 * 16 * 16);  // nothing left to make
  refused(8, 3u * 8 * 16 * 16);    // no whole group
  refused(9, 3u * 9 * 16 * 15);
  auto [ignored, plain] = setup(6, 6, train_json(6));
  CHECK_FALSE(plain.video_to_world());
  CHECK_THROWS_AS(plain.denoise(request, cosmos()), Error);
}

TEST_CASE("a flow-matching model is asked with the state itself and sigma times 1000",
          "[denoiser]") {
  Json train = train_json(6);
  train["sampling"] = {{"process", "flow"}, {"steps", 3}, {"shift", 3.0}, {"guidance", 0.0}};
  auto [network, generator] = setup(6, 6, train);
  const SampleOptions options = generator.sampling();
  CHECK((options.sampler == Sampler::flow && options.steps == 3 && options.shift == 3));
  ClipRequest request = small(1);
  request.noise = std::make_shared<const std::vector<float>>(6u * 2 * 2, 2.0f);
  const Latent latent = generator.denoise(request, options);
  const std::vector<double> sigmas = noise_levels(options);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(network->asked[i].samples[0].c_noise == Approx(1000 * sigmas[i]));
    // The velocity is 1 everywhere, so the state falls with sigma.
    CHECK(network->asked[i].latents.floats()[0] == Approx(2 - (1 - sigmas[i])));
  }
  CHECK(latent.values[0] == Approx(1.0 + 0.1));
  CHECK_THROWS_AS(generator.denoise(request, cosmos()), Error);
  // Its student of two steps: estimate x - sigma, then noise that only step, seed and prompt
  // decide.
  SampleOptions few = options;
  few.sampler = Sampler::lcm, few.sigmas = {1, 0.75};
  request.seed = 3;
  network->asked.clear();
  const Latent student = generator.denoise(request, few);
  REQUIRE(network->asked.size() == 2);
  CHECK(network->asked[1].samples.size() == 1);
  CHECK(network->asked[1].samples[0].c_noise == 750);
  const Random random(3, Purpose::sampler_noise, 1, random_key(request.prompt));
  for (std::size_t i = 0; i < 24; ++i) {
    const double second = 0.25 * (2 - 1) + 0.75 * random.normal(i);
    CHECK(network->asked[1].latents.floats()[i] == Approx(second));
    CHECK(student.values[i] == Approx(second - 0.75 + 0.1));
  }
}

TEST_CASE("a multistep sampler begins with the noise itself and asks at whole times",
          "[denoiser]") {
  Json train = train_json(6);
  train["sampling"] = {
      {"process", "flow"}, {"sampler", "flow"},
      {"steps", 3},        {"guidance", 0.0},
      {"shift", 12.0},     {"diffusers", {{"steps", 4}, {"guidance", 1.0}, {"shift", 3.0}}}};
  auto [network, generator] = setup(6, 6, train);
  ClipRequest request = small(1);
  request.noise = std::make_shared<const std::vector<float>>(6u * 2 * 2, 2.0f);
  SampleOptions options = generator.sampling();
  CHECK((options.as == models::SampledAs::reference && options.shift == 12));
  options.sampler = Sampler::unipc;
  generator.denoise(request, options);
  const std::vector<double> levels = noise_levels(options);
  REQUIRE(network->asked.size() == 3);
  CHECK(levels[0] < 1);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(network->asked[i].samples[0].c_noise == std::trunc(1000 * levels[i]));
    // The velocity is 1 everywhere, which UniPC follows exactly.
    CHECK(network->asked[i].latents.floats()[0] == Approx(2 - (levels[0] - levels[i])));
    CHECK_FALSE(network->asked[i].round_embedding);
  }
  options.as = models::SampledAs::diffusers;
  generator.denoise(request, options);
  CHECK(network->asked.back().round_embedding);
  options.diffusers.reset();
  generator.denoise(request, options);
  CHECK_FALSE(network->asked.back().round_embedding);
}

TEST_CASE("a state that is not of the clip is refused, one that is goes on to the same latent",
          "[denoiser]") {
  auto [network, generator] = setup(6, 6, train_json(6));
  const ClipRequest request = small();
  SampleOptions options = cosmos(5);
  options.sampler = Sampler::res;
  std::vector<models::SamplerState> states;
  const Latent whole = generator.denoise(
      request, options, {}, [&](const models::SamplerState& state) { states.push_back(state); });
  REQUIRE(states.size() == 5);  // of six: not of the last
  for (const models::SamplerState& state : states)
    CHECK(generator.denoise(request, options, state).values == whole.values);
  models::SamplerState wrong = states[1];
  wrong.x.pop_back();
  CHECK_THROWS_AS(generator.denoise(request, options, wrong), Error);
  wrong = states[1];
  wrong.estimates[0].pop_back();
  CHECK_THROWS_AS(generator.denoise(request, options, wrong), Error);
  wrong = states[1];
  wrong.step = 100;
  CHECK_THROWS_AS(generator.denoise(request, options, wrong), Error);
  // UniPC keeps one more state.
  options.sampler = Sampler::unipc;
  states.clear();
  const Latent other = generator.denoise(
      request, options, {}, [&](const models::SamplerState& state) { states.push_back(state); });
  for (const models::SamplerState& state : states)
    CHECK(generator.denoise(request, options, state).values == other.values);
  wrong = states[1];
  wrong.corrected.pop_back();
  CHECK_THROWS_AS(generator.denoise(request, options, wrong), Error);
}

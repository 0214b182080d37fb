// Models with two networks that are chosen by noise level, of which one is in memory at a time.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "dist/threads.h"
#include "generate/ranks/clip_network.h"
#include "generate/sampling/generator.h"
#include "models/dit/switched_network.h"
#include "support/clip_networks.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

/// Two networks of one configuration with other values.
struct TwoNetworks {
  models::NetworkConfig config = network_of(&models::kDit);
  DType compute = DType::f32;
  std::optional<ops::RowFormat> quantized = {};
  std::atomic<int> loads = 0;  ///< but for the first

  std::unique_ptr<models::DiffusionNetwork> make(int number, nn::NetworkLayout layout = {}) const {
    layout.quantized = quantized;
    auto network = models::make_network(config, 1, compute, Device::cpu, false, layout);
    fill(*network, number == 0 ? 0.1f : -0.13f);
    return network;
  }
  models::SwitchedNetwork switched(const nn::NetworkLayout& layout = {}) {
    return {make(0, layout), [this, layout](int number) {
              ++loads;
              return make(number, layout);
            }};
  }
  /// What network `number` alone gives.
  Tensor output(int number, models::NetworkBatch batch, models::Fp8Parts fp8 = {}) const {
    const auto network = make(number);
    if (fp8.any()) network->set_inference_fp8(fp8);
    if (quantized) network->quantize();
    ops::Tape silent(false);
    return network->forward(silent, batch);
  }
};

models::NetworkBatch for_network(int number, models::NetworkBatch batch) {
  batch.network = number;
  return batch;
}

/// Facts of a model whose latents are wavelets and whose texts are hashed.
ModelFacts facts_of(const models::NetworkConfig& config, std::optional<double> boundary) {
  const std::vector<double> mean(static_cast<std::size_t>(config.in_channels), 0.1);
  const std::vector<double> deviation(mean.size(), 1.0);
  const Json train = {
      {"tokenizer", {{"name", "builtin:wavelet"}, {"channels", config.in_channels}}},
      {"text_encoder", {{"name", "builtin:hash"}, {"dim", config.text_embed_dim}}},
      {"latent_scale", {{"mean", mean}, {"std", deviation}}},
      {"trained", {{"frames", 2}, {"height", 4}, {"width", 6}, {"fps", {12.0}}}}};
  ModelFacts facts = ModelFacts::from_json(train, "train.json");
  facts.boundary = boundary;
  return facts;
}

}  // namespace

TEST_CASE("of two networks ranks that share a clip use the one that the batch is for") {
  TwoNetworks two;
  for (const std::string text : {"", "cfg=2", "tp=2", "cp=2", "cfg=2,cp=2,tp=2", "cp=2,shard"})
    for (const std::size_t samples : {1, 2}) {
      INFO(text << ", samples " << samples);
      const models::NetworkBatch batch = guided(two.config, samples);
      dist::Layout parallel = parse_parallel(text);
      if (parallel.cp > 1) parallel.cp_kind = nn::CpKind::gather;
      two.loads = 0;
      std::vector<Tensor> got;
      dist::thread_worlds(parallel.sharers(), [&](dist::World& world) {
        const ClipRanks ranks(world, parallel);
        models::SwitchedNetwork own = two.switched(ranks.network());
        ClipNetwork network(own, ranks);
        if (!ranks.leads()) return network.serve(nullptr);
        const ClipNetwork::Clip clip(network);
        for (const int number : {0, 1, 1, 0})
          got.push_back(clip.forward(for_network(number, batch)));
        network.end();
      });
      REQUIRE(got.size() == 4);
      CHECK(two.loads == 2 * parallel.sharers());
      CHECK(apart_from(two.output(0, batch), got[0]) < 1e-5);
      CHECK(apart_from(two.output(1, batch), got[1]) < 1e-5);
      CHECK(apart_from(got[1], got[2]) == 0);
      CHECK(apart_from(got[0], got[3]) == 0);
      CHECK(apart_from(got[0], got[1]) > 0.1);
    }
}

TEST_CASE("FP8 and 8-bit weights of two networks are those of each") {
  TwoNetworks low{.config = fp8_network(), .compute = DType::bf16};
  const models::NetworkBatch batch = guided(low.config, 2);
  const models::Fp8Parts parts{true, true};
  models::SwitchedNetwork in_fp8 = low.switched();
  ClipNetwork fp8(in_fp8);
  fp8.set_fp8(parts);
  TwoNetworks small{.quantized = ops::RowFormat::int8};
  const models::NetworkBatch other = guided(small.config, 2);
  models::SwitchedNetwork in_int8 = small.switched();
  ClipNetwork quantized(in_int8);
  quantized.quantize_all();
  for (const int number : {0, 1, 0}) {
    CHECK(apart_from(low.output(number, batch, parts), fp8.forward(for_network(number, batch))) ==
          0);
    CHECK(apart_from(small.output(number, other), quantized.forward(for_network(number, other))) ==
          0);
  }
}

TEST_CASE("clips of several threads go through two networks together") {
  TwoNetworks two;
  models::SwitchedNetwork own = two.switched();
  const ClipNetwork network(own);
  const models::NetworkBatch batch = guided(two.config, 2);
  const std::array wanted = {two.output(0, batch), two.output(1, batch)};
  constexpr int kClips = 3;
  std::vector<std::unique_ptr<ClipNetwork::Clip>> clips;
  while (clips.size() < kClips)
    clips.push_back(std::make_unique<ClipNetwork::Clip>(network));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClips; ++i)
    threads.emplace_back([&, i] {
      // The first one ends before it needs the second network, so the others do not wait for it.
      for (const int number : {0, 0, 1, 1, 0})
        if (i > 0 || number == 0)
          wrong += apart_from(wanted[number], clips[i]->forward(for_network(number, batch))) != 0;
      clips[i].reset();
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(two.loads == 2);
}

TEST_CASE("a network that could not be loaded is loaded when it is needed again") {
  TwoNetworks two;
  bool broken = true;
  models::SwitchedNetwork network(two.make(0), [&](int number) {
    if (number == 1 && broken) fail("no such network");
    return two.make(number);
  });
  const ClipNetwork clip(network);
  const models::NetworkBatch batch = guided(two.config, 1);
  CHECK_THROWS_WITH(clip.forward(for_network(1, batch)), "no such network");
  CHECK(apart_from(two.output(0, batch), clip.forward(for_network(0, batch))) == 0);
  broken = false;
  CHECK(apart_from(two.output(1, batch), clip.forward(for_network(1, batch))) == 0);
}

TEST_CASE("a clip of two networks is the same on several threads, and from any of its states on") {
  TwoNetworks two;
  two.config.in_channels = two.config.out_channels = 6;
  SampleOptions options;
  options.sampler = models::Sampler::res;
  options.steps = 5;
  ClipRequest request;
  request.prompt = "a red circle";
  request.frames = 9, request.height = 32, request.width = 48, request.fps = 12;
  const auto with_boundary = [&](std::optional<double> boundary, int first = 0) {
    models::LoadedModel model;
    model.facts = facts_of(two.config, boundary);
    model.network = std::make_unique<models::SwitchedNetwork>(
        two.make(first), [&two](int number) { return two.make(number); });
    return Generator(std::move(model));
  };
  const Generator generator = with_boundary(1);
  std::vector<models::SamplerState> states;
  const Latent whole = generator.denoise(
      request, options, {}, [&](const models::SamplerState& state) { states.push_back(state); });
  const std::vector<double> levels = noise_levels(options);
  REQUIRE((levels[1] > 1 && levels[4] < 1));  // states of either network
  for (const models::SamplerState& state : states)
    CHECK(generator.denoise(request, options, state).values == whole.values);

  std::vector<std::vector<float>> many(3);
  std::vector<std::thread> threads;
  for (auto& one : many)
    threads.emplace_back([&] { one = generator.denoise(request, options).values; });
  for (std::thread& thread : threads)
    thread.join();
  for (const auto& one : many)
    CHECK(one == whole.values);

  const auto first = with_boundary({}).denoise(request, options).values;
  const auto second = with_boundary({}, 1).denoise(request, options).values;
  CHECK(with_boundary(0.001).denoise(request, options).values == first);
  CHECK(with_boundary(1000).denoise(request, options).values == second);
  CHECK((whole.values != first && whole.values != second && first != second));
}

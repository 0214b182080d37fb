// A forward in parts, each with a tape of its own, is forward().
// SPDX-License-Identifier: Apache-2.0
#include "nn/staged_forward.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <vector>

#include "models/dit/architecture.h"
#include "models/moviegen/moviegen.h"
#include "support/distance.h"
#include "support/noise.h"
#include "support/small_networks.h"

using namespace vfm;
using models::DiffusionNetwork;
using models::NetworkBatch;
using models::NetworkConfig;
using nn::Recompute;

namespace {

constexpr int kBlocks = 4;

NetworkBatch image_and_video(const NetworkConfig& c) {
  NetworkBatch batch;
  batch.samples = {{2, 4, 6, 12.f, 0.4f, 3}, {1, 8, 4, 0.f, -0.3f, 1}};
  batch.latents = noise_tensor({c.in_channels * (48 + 32)}, 1);
  batch.text = noise_tensor({4, c.text_embed_dim}, 2);
  return batch;
}

Tensor cotangent_of(const Tensor& output) {
  return noise_tensor(output.shape(), 3);
}

/// A rank's part of a pipeline: blocks, and at its ends the embedding and the head.
struct Part {
  std::size_t begin = 0, end = 0;
  ops::Tape tape;
  nn::Streams in, in_gradients, out;
};

/// The output; gradients are in the parameters.
Tensor in_parts(const DiffusionNetwork& network, const NetworkBatch& batch,
                const std::vector<std::size_t>& cuts) {
  std::deque<Part> parts;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    Part& part = parts.emplace_back();
    part.begin = cuts[i];
    part.end = cuts[i + 1];
    const auto stages = network.stages(part.tape, batch);
    if (i == 0) {
      part.in = stages->embed();
    } else {
      for (const Tensor& made : parts[i - 1].out) {  // as it comes from another rank
        part.in.push_back(made.clone());
        part.in_gradients.push_back(Tensor::zeros(made.shape()));
        part.tape.watch(part.in.back(), part.in_gradients.back());
      }
    }
    part.out = stages->blocks(part.in, part.begin, part.end);
    CHECK(part.out.front().dtype() == DType::f32);
    if (i + 2 == cuts.size()) part.out = {stages->head(part.out)};
  }
  const Tensor output = parts.back().out.front();
  nn::Streams gradients = {cotangent_of(output)};
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    nn::backward(part->tape, part->out, gradients);
    gradients = part->in_gradients;
  }
  return output;
}

/// What a part makes for itself, so that its gradient is added up in another order.
bool conditions(const std::string& name) {
  return name.find("time_embed") == 0 || name.find("fps_embed") == 0 ||
         name.find("learnable_pos_embed") == 0 || name.find("condition_embedder") == 0;
}

void check_parts(NetworkConfig config, DType compute, Recompute recompute) {
  config.num_layers = kBlocks;
  INFO(config.architecture->name << " " << dtype_name(compute) << " "
                                 << nn::recompute_name(recompute));
  const auto network = models::make_network(config, 1, compute);
  randomise(network->parameters());
  network->set_recompute(recompute);
  const NetworkBatch batch = image_and_video(config);
  nn::zero_gradients(network->parameters());
  ops::Tape tape;
  const Tensor output = network->forward(tape, batch);
  tape.backward(output, cotangent_of(output));
  std::vector<Tensor> expected;
  for (const nn::Parameter* p : network->parameters())
    expected.push_back(p->grad.clone());
  for (const std::vector<std::size_t>& cuts :
       {std::vector<std::size_t>{0, kBlocks}, {0, 1, kBlocks}, {0, 2, 3, kBlocks, kBlocks}}) {
    nn::zero_gradients(network->parameters());
    const Tensor again = in_parts(*network, batch, cuts);
    CHECK(std::ranges::equal(again.floats(), output.floats()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const nn::Parameter& p = *network->parameters()[i];
      INFO(p.name << " in " << cuts.size() - 1 << " parts");
      // The gradient of embedded text is rounded where the network computes in bf16.
      const bool rounded = compute == DType::bf16 && p.name.find("text_embedder") != p.name.npos;
      if (cuts.size() > 2 && conditions(p.name))
        CHECK(distance(p.grad.floats(), expected[i].floats()) < (rounded ? 2e-2 : 1e-5));
      else
        CHECK(std::ranges::equal(p.grad.floats(), expected[i].floats()));
    }
  }
}

}  // namespace

TEST_CASE("a network in parts computes what it computes at once") {
  NetworkConfig moviegen = tiny_dit();
  moviegen.architecture = &models::kMovieGen;
  for (const NetworkConfig& config : {tiny_dit(), tiny_stdit(), moviegen, tiny_wan()}) {
    check_parts(config, DType::f32, Recompute::none);
    check_parts(config, DType::f32, Recompute::block);
    check_parts(config, DType::bf16, Recompute::elementwise);
  }
}

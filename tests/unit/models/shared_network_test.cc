// A diffusion network that several ranks share gives the output and the gradients of one rank.
// The ranks are threads; what they exchange is what MPI would (unit_dist).
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/philox.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "models/dit/network.h"
#include "support/noise.h"
#include "support/small_networks.h"

using namespace vfm;
using dist::Axes;
using dist::Mesh;
using models::CpKind;
using models::DiffusionNetwork;
using models::NetworkBatch;
using models::NetworkConfig;
using models::NetworkLayout;
using models::NetworkType;
using models::Recompute;

namespace {

// Three samples that differ in everything: of 18, 8 and 2 tokens.
NetworkBatch mixed_samples(const NetworkConfig& c) {
  NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 0.4f, 3}, {1, 8, 4, 0.f, -0.3f, 1}, {2, 2, 2, 30.f, 0.1f, 5}};
  batch.latents = noise_tensor({c.in_channels * (72 + 32 + 8)}, 1);
  batch.text = noise_tensor({9, c.text_embed_dim}, 2);
  return batch;
}

NetworkBatch one_sample(const NetworkConfig& c) {
  NetworkBatch batch;
  batch.samples = {{3, 6, 6, 24.f, 0.2f, 2}};
  batch.latents = noise_tensor({c.in_channels * 108}, 4);
  batch.text = noise_tensor({2, c.text_embed_dim}, 5);
  return batch;
}

// Values of a whole parameter, in which nothing is zero that would hide a gradient.
Tensor whole_value(const nn::Parameter& p) {
  const Tensor values = noise_tensor(p.placement.global, random_key(p.name));
  for (float& v : values.floats())
    v *= 0.1f;
  return values;
}

// This rank's part of a whole tensor: cut along one dim at most.
Tensor part_of_whole(const Tensor& whole, const nn::Parameter& p) {
  if (p.whole()) return whole;
  const Shape &shape = p.shape(), &offset = p.placement.offset;
  REQUIRE(shape.size() == 2);
  const Tensor part(shape);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    std::memcpy(part.data<float>() + row * shape[1],
                whole.data<float>() + (row + offset[0]) * whole.size(1) + offset[1],
                static_cast<std::size_t>(shape[1]) * sizeof(float));
  return part;
}

struct Outcome {
  Tensor output;
  std::map<std::string, Tensor> gradients;  // whole
};

Outcome pass(const DiffusionNetwork& network, const NetworkBatch& batch) {
  const NetworkConfig& c = network.config();
  const Tensor cotangent =
      noise_tensor({batch.latents.elements() / c.in_channels * c.out_channels}, 3);
  nn::zero_gradients(network.parameters());
  ops::Tape tape;
  Outcome outcome;
  outcome.output = network.forward(tape, batch);
  tape.backward(outcome.output, cotangent.reshape(outcome.output.shape()));
  return outcome;
}

Outcome alone(const NetworkConfig& config, const NetworkBatch& batch, DType compute) {
  const auto network = models::make_network(config, 1, compute);
  for (const nn::Parameter* p : network->parameters())
    p->write(whole_value(*p));
  Outcome outcome = pass(*network, batch);
  for (const nn::Parameter* p : network->parameters())
    outcome.gradients[p->name] = p->grad.clone();
  return outcome;
}

/// How a pass is shared, and computed.
struct Way {
  int tp = 1, cp = 1;
  CpKind kind = CpKind::gather;
  DType compute = DType::f32;
  Recompute recompute = Recompute::none;
};

// The sums over ranks are what a training makes: of a part over the ranks that have the same part,
// of all else over all ranks.
Outcome shared(const NetworkConfig& config, const NetworkBatch& batch, const Way& way) {
  Outcome outcome;
  std::mutex mutex;
  dist::thread_worlds(way.tp * way.cp, [&](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = way.tp, sizes.cp = way.cp;
    const Mesh mesh(world, sizes);
    const NetworkLayout layout{&mesh.group(Axes::tp), &mesh.group(Axes::cp), way.kind};
    const auto network = models::make_network(config, 1, way.compute, Device::cpu, true, layout);
    network->set_recompute(way.recompute);
    for (const nn::Parameter* p : network->parameters())
      p->write(part_of_whole(whole_value(*p), *p));
    const Outcome own = pass(*network, batch);
    mesh.group(Axes::tp | Axes::cp).all_reduce(own.output).wait();
    for (const nn::Parameter* p : network->parameters())
      mesh.group(p->whole() ? Axes::tp | Axes::cp : Axes::cp).all_reduce(p->grad).wait();
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) outcome.output = own.output;
    for (const nn::Parameter* p : network->parameters()) {
      Tensor& whole = outcome.gradients[p->name];
      if (!whole.defined()) whole = Tensor::zeros(p->placement.global);
      const Shape shape = p->shape().size() == 2 ? p->shape() : Shape{1, p->elements()};
      const Shape offset = p->shape().size() == 2 ? p->placement.offset : Shape{0, 0};
      const std::int64_t columns = p->shape().size() == 2 ? whole.size(1) : p->elements();
      for (std::int64_t row = 0; row < shape[0]; ++row)
        std::memcpy(whole.data<float>() + (row + offset[0]) * columns + offset[1],
                    p->grad.data<float>() + row * shape[1],
                    static_cast<std::size_t>(shape[1]) * sizeof(float));
    }
  });
  return outcome;
}

void compare(const NetworkConfig& config, const NetworkBatch& batch, const Way& way) {
  INFO(models::network_type_name(config.type)
       << " tp=" << way.tp << " cp=" << way.cp << ", kind " << static_cast<int>(way.kind)
       << ", recompute " << models::recompute_name(way.recompute));
  const Outcome expected = alone(config, batch, way.compute), made = shared(config, batch, way);
  const bool rounded = way.compute == DType::bf16;
  CHECK(distance(made.output.floats(), expected.output.floats()) < (rounded ? 2e-2 : 1e-5));
  REQUIRE(made.gradients.size() == expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    INFO(name);
    double largest = 0;
    for (const float v : gradient.floats())
      largest = std::max(largest, double{std::abs(v)});
    CHECK(largest > 0);
    CHECK(distance(made.gradients.at(name).floats(), gradient.floats()) < (rounded ? 4e-2 : 1e-4));
  }
}

NetworkConfig with_heads(NetworkConfig config, int heads) {
  config.num_attention_heads = heads;
  return config;
}

}  // namespace

TEST_CASE("ranks that share heads and widths give what one rank gives") {
  const NetworkConfig c = tiny_dit();
  compare(c, mixed_samples(c), {.tp = 2});
  compare(c, one_sample(c), {.tp = 2, .compute = DType::bf16});
}

TEST_CASE("ranks that share tokens give what one rank gives") {
  const NetworkConfig c = tiny_dit();
  compare(c, mixed_samples(c), {.cp = 2});
  compare(c, mixed_samples(c), {.cp = 3});  // a sample is shorter than that
  compare(c, one_sample(c), {.cp = 4, .compute = DType::bf16});
}

TEST_CASE("ranks that exchange tokens for heads give what one rank gives") {
  for (const int cp : {2, 3}) {
    const NetworkConfig c = with_heads(tiny_dit(), 2 * cp);
    compare(c, mixed_samples(c), {.cp = cp, .kind = CpKind::all_to_all});
  }
  const NetworkConfig c = with_heads(tiny_dit(), 4);
  compare(
      c, mixed_samples(c),
      {.tp = 2, .cp = 2, .kind = CpKind::all_to_all, .recompute = Recompute::block_but_attention});
  compare(c, one_sample(c),
          {.cp = 4,
           .kind = CpKind::all_to_all,
           .compute = DType::bf16,
           .recompute = Recompute::elementwise});
}

TEST_CASE("ranks that share both give what one rank gives, whatever is computed again") {
  const NetworkConfig c = tiny_dit();
  for (const Recompute recompute :
       {Recompute::none, Recompute::elementwise, Recompute::block_but_attention, Recompute::block})
    compare(c, mixed_samples(c), {.tp = 2, .cp = 2, .recompute = recompute});
  compare(c, mixed_samples(c),
          {.tp = 2, .cp = 2, .compute = DType::bf16, .recompute = Recompute::elementwise});
}

TEST_CASE("ranks share the attention in frames and pixels by heads") {
  const NetworkConfig c = with_heads(tiny_stdit(), 4);
  compare(c, mixed_samples(c), {.tp = 2});
  compare(c, mixed_samples(c), {.cp = 2, .kind = CpKind::all_to_all});
  compare(c, mixed_samples(c),
          {.tp = 2, .cp = 2, .kind = CpKind::all_to_all, .recompute = Recompute::elementwise});
}

TEST_CASE("ranks share a network whose heads share keys") {
  NetworkConfig c = with_heads(tiny_dit(), 8);
  c.type = NetworkType::moviegen;
  c.num_key_value_heads = 4;
  compare(c, mixed_samples(c), {.tp = 2});
  compare(c, mixed_samples(c), {.cp = 3, .recompute = Recompute::elementwise});
  compare(c, mixed_samples(c), {.tp = 2, .cp = 2, .recompute = Recompute::block});
  compare(c, mixed_samples(c), {.tp = 2, .cp = 2, .kind = CpKind::all_to_all});
}

TEST_CASE("a layout that the network cannot have is refused with the nearest one") {
  dist::thread_worlds(3, [](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = 3;
    const Mesh mesh(world, sizes);
    dist::Group& all = mesh.group(Axes::tp);
    const auto refused = [](const NetworkConfig& config, const NetworkLayout& layout,
                            const char* nearest) {
      CHECK_THROWS_WITH(models::make_network(config, 1, DType::f32, Device::cpu, true, layout),
                        Catch::Contains(nearest));
    };
    refused(tiny_dit(), {&all, nullptr}, "the nearest is parallel.tp=2");
    refused(tiny_dit(), {nullptr, &all, CpKind::all_to_all}, "parallel.cp_kind=gather can be");
    refused(tiny_stdit(), {nullptr, &all}, "parallel.cp_kind=all_to_all can be");
    NetworkConfig few = with_heads(tiny_dit(), 6);
    few.type = NetworkType::moviegen;
    few.num_key_value_heads = 2;
    refused(few, {&all, nullptr}, "2 heads of keys and values are not shared by 3 ranks");
  });
}

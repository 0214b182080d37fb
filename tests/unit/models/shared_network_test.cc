// A diffusion network that several ranks share gives the output and the gradients of one rank.
// The ranks are threads; what they exchange is what MPI would (unit_dist).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "models/dit/architecture.h"
#include "models/dit/lora.h"
#include "models/dit/network.h"
#include "models/moviegen/moviegen.h"
#include "support/noise.h"
#include "support/small_networks.h"

using namespace vfm;
using dist::Axes;
using dist::Mesh;
using models::Architecture;
using models::DiffusionNetwork;
using models::kDit;
using models::kMovieGen;
using models::kStdit;
using models::NetworkBatch;
using models::NetworkConfig;
using nn::CpKind;
using nn::NetworkLayout;
using nn::Recompute;

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
  if (shape.size() == 1) return whole.rows(offset[0], offset[0] + shape[0]).clone();
  REQUIRE(shape.size() == 2);
  const Tensor part(shape);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    std::memcpy(part.data<float>() + row * shape[1],
                whole.data<float>() + (row + offset[0]) * whole.size(1) + offset[1],
                static_cast<std::size_t>(shape[1]) * sizeof(float));
  return part;
}

/// How a pass is shared, and computed.
struct Way {
  int tp = 1, cp = 1;
  CpKind kind = CpKind::gather;
  int heads = 1;  // of cp, for all_to_all_ring
  DType compute = DType::f32;
  Recompute recompute = Recompute::none;
  bool hybrid = false;
  int adapters = 0;  // of this rank on every matrix, and nothing else is trained
};

std::unique_ptr<DiffusionNetwork> make(const NetworkConfig& config, const Way& way,
                                       const NetworkLayout& layout = {}) {
  auto network =
      models::make_network(config, 1, way.compute, Device::cpu, way.adapters == 0, layout);
  if (way.adapters > 0) {
    std::vector<nn::AdapterShape> shapes;
    for (const models::NetworkMatrix& matrix : models::network_matrices(config))
      shapes.push_back({matrix.module, way.adapters, 2});
    network->attach(shapes, true);
  }
  for (const nn::ParameterList* list : {&network->parameters(), &network->adapters()})
    for (const nn::Parameter* p : *list)
      p->write(part_of_whole(whole_value(*p), *p));
  return network;
}

const nn::ParameterList& trained(const DiffusionNetwork& network) {
  return network.adapters().empty() ? network.parameters() : network.adapters();
}

struct Outcome {
  Tensor output;
  std::map<std::string, Tensor> gradients;  // whole
};

Outcome pass(const DiffusionNetwork& network, const NetworkBatch& batch) {
  const NetworkConfig& c = network.config();
  const Tensor cotangent =
      noise_tensor({batch.latents.elements() / c.in_channels * c.out_channels}, 3);
  nn::zero_gradients(trained(network));
  ops::Tape tape;
  Outcome outcome;
  outcome.output = network.forward(tape, batch);
  tape.backward(outcome.output, cotangent.reshape(outcome.output.shape()));
  return outcome;
}

Outcome alone(const NetworkConfig& config, const NetworkBatch& batch, const Way& way) {
  const auto network = make(config, way);
  Outcome outcome = pass(*network, batch);
  for (const nn::Parameter* p : trained(*network))
    outcome.gradients[p->name] = p->grad.clone();
  return outcome;
}

dist::Layout sizes_of(const Way& way) {
  dist::Layout sizes;
  sizes.tp = way.tp, sizes.cp = way.cp, sizes.cp_kind = way.kind, sizes.cp_heads = way.heads;
  return sizes;
}

NetworkLayout layout_of(const Mesh& mesh, const Way& way) {
  NetworkLayout layout{&mesh.group(Axes::tp), &mesh.group(Axes::cp), way.kind, way.hybrid};
  if (way.kind == CpKind::all_to_all_ring) {
    layout.cp_heads = &mesh.group(Axes::cp_heads);
    layout.cp_ring = &mesh.group(Axes::cp_ring);
  }
  return layout;
}

// By rank.
std::vector<dist::Traffic> sent_forward(const NetworkConfig& config, const NetworkBatch& batch,
                                        const Way& way) {
  std::vector<dist::Traffic> sent(static_cast<std::size_t>(way.tp * way.cp));
  dist::thread_worlds(way.tp * way.cp, [&](dist::World& world) {
    const Mesh mesh(world, sizes_of(way));
    const auto network = make(config, way, layout_of(mesh, way));
    ops::Tape silent(false);
    world.traffic().reset();
    network->forward(silent, batch);
    sent[static_cast<std::size_t>(world.rank())] = world.traffic();
  });
  return sent;
}

// The sums over ranks are what a training makes: of a part over the ranks that have the same part,
// of all else over all ranks.
Outcome shared(const NetworkConfig& config, const NetworkBatch& batch, const Way& way) {
  Outcome outcome;
  std::mutex mutex;
  dist::thread_worlds(way.tp * way.cp, [&](dist::World& world) {
    const Mesh mesh(world, sizes_of(way));
    const auto network = make(config, way, layout_of(mesh, way));
    network->set_recompute(way.recompute);
    const Outcome own = pass(*network, batch);
    mesh.group(Axes::tp | Axes::cp).all_reduce(own.output).wait();
    for (const nn::Parameter* p : trained(*network))
      mesh.group(p->whole() ? Axes::tp | Axes::cp : Axes::cp).all_reduce(p->grad).wait();
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) outcome.output = own.output;
    for (const nn::Parameter* p : trained(*network)) {
      Tensor& whole = outcome.gradients[p->name];
      if (!whole.defined()) whole = Tensor::zeros(p->placement.global);
      const bool matrix = p->shape().size() == 2;
      const Shape shape = matrix ? p->shape() : Shape{1, p->elements()};
      const Shape offset = matrix       ? p->placement.offset
                           : p->whole() ? Shape{0, 0}
                                        : Shape{0, p->placement.offset[0]};
      const std::int64_t columns = matrix ? whole.size(1) : whole.elements();
      for (std::int64_t row = 0; row < shape[0]; ++row)
        std::memcpy(whole.data<float>() + (row + offset[0]) * columns + offset[1],
                    p->grad.data<float>() + row * shape[1],
                    static_cast<std::size_t>(shape[1]) * sizeof(float));
    }
  });
  return outcome;
}

void compare(const NetworkConfig& config, const NetworkBatch& batch, const Way& way) {
  INFO(config.architecture->name << " tp=" << way.tp << " cp=" << way.cp << ' '
                                 << nn::cp_kind_name(way.kind) << (way.hybrid ? " hybrid" : "")
                                 << ", recompute " << nn::recompute_name(way.recompute));
  const Outcome expected = alone(config, batch, way), made = shared(config, batch, way);
  const bool rounded = way.compute == DType::bf16;
  Way exactly = way;
  exactly.compute = DType::f32;
  const Outcome exact = rounded ? alone(config, batch, exactly) : Outcome();
  CHECK(distance(made.output.floats(), expected.output.floats()) < (rounded ? 2e-2 : 1e-5));
  REQUIRE(made.gradients.size() == expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    INFO(name);
    double largest = 0;
    for (const float v : gradient.floats())
      largest = std::max(largest, double{std::abs(v)});
    CHECK(largest > 0);
    // What rounding makes of it on one rank, it may make of it again.
    const double limit =
        rounded ? std::max(4e-2, 2 * distance(gradient.floats(), exact.gradients.at(name).floats()))
                : 1e-4;
    CHECK(distance(made.gradients.at(name).floats(), gradient.floats()) < limit);
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

TEST_CASE("ranks between whom keys go round give what one rank gives") {
  const NetworkConfig c = tiny_dit();
  compare(c, mixed_samples(c), {.cp = 2, .kind = CpKind::ring});
  for (const Recompute recompute :
       {Recompute::none, Recompute::elementwise, Recompute::block_but_attention, Recompute::block})
    compare(c, mixed_samples(c),
            {.cp = 3, .kind = CpKind::ring, .recompute = recompute});  // a sample is shorter
  compare(c, one_sample(c), {.cp = 4, .kind = CpKind::ring, .compute = DType::bf16});
  compare(c, mixed_samples(c),
          {.tp = 2, .cp = 2, .kind = CpKind::ring, .recompute = Recompute::block_but_attention});
}

TEST_CASE("ranks that exchange tokens for heads, in a ring, give what one rank gives") {
  const NetworkConfig c = with_heads(tiny_dit(), 4);
  const Way way{.cp = 4, .kind = CpKind::all_to_all_ring, .heads = 2};
  for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                    Recompute::block_but_attention, Recompute::block}) {
    Way again = way;
    again.recompute = recompute;
    compare(c, mixed_samples(c), again);
  }
  compare(c, one_sample(c),
          {.cp = 4, .kind = CpKind::all_to_all_ring, .heads = 2, .compute = DType::bf16});
  compare(c, one_sample(c), {.cp = 6, .kind = CpKind::all_to_all_ring, .heads = 2});
  compare(c, mixed_samples(c), {.tp = 2, .cp = 4, .kind = CpKind::all_to_all_ring, .heads = 2});
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

TEST_CASE("ranks share frames, and pixels for attention in time, whatever full attention does") {
  const NetworkConfig c = with_heads(tiny_stdit(), 12);
  for (const CpKind kind : {CpKind::gather, CpKind::all_to_all, CpKind::ring})
    for (const int cp : {2, 3}) {
      compare(c, mixed_samples(c), {.cp = cp, .kind = kind, .hybrid = true});
      compare(c, one_sample(c), {.cp = cp, .kind = kind, .hybrid = true});
    }
  const auto both = CpKind::all_to_all_ring;
  compare(c, mixed_samples(c), {.cp = 4, .kind = both, .heads = 2, .hybrid = true});
  compare(c, one_sample(c),
          {.cp = 2, .kind = CpKind::ring, .compute = DType::bf16, .hybrid = true});
}

TEST_CASE("a hybrid gives what one rank gives, whatever is computed again, and with heads shared") {
  const NetworkConfig c = with_heads(tiny_stdit(), 4);
  for (const Recompute recompute :
       {Recompute::none, Recompute::elementwise, Recompute::block_but_attention, Recompute::block})
    for (const CpKind kind : {CpKind::gather, CpKind::all_to_all, CpKind::ring})
      compare(c, mixed_samples(c),
              {.tp = 2, .cp = 2, .kind = kind, .recompute = recompute, .hybrid = true});
  compare(c, one_sample(c),
          {.tp = 2,
           .cp = 3,
           .kind = CpKind::ring,
           .compute = DType::bf16,
           .recompute = Recompute::elementwise,
           .hybrid = true});
  compare(c, mixed_samples(c),
          {.tp = 2, .cp = 2, .kind = CpKind::all_to_all, .hybrid = true, .adapters = 1});
}

TEST_CASE("a rank of a hybrid may have no frame", "[long]") {
  const NetworkConfig c = with_heads(tiny_stdit(), 8);
  NetworkBatch two;  // frames of four tokens
  two.samples = {{2, 4, 4, 8.f, 0.3f, 2}};
  two.latents = noise_tensor({c.in_channels * 32}, 1);
  two.text = noise_tensor({2, c.text_embed_dim}, 2);
  for (const CpKind kind : {CpKind::gather, CpKind::all_to_all, CpKind::ring}) {
    compare(c, two, {.cp = 4, .kind = kind, .hybrid = true});
    for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                      Recompute::block_but_attention, Recompute::block})
      compare(c, two, {.tp = 2, .cp = 4, .kind = kind, .recompute = recompute, .hybrid = true});
    compare(c, two,
            {.cp = 4,
             .kind = kind,
             .compute = DType::bf16,
             .recompute = Recompute::block,
             .hybrid = true});
  }
  compare(c, mixed_samples(c), {.cp = 8, .kind = CpKind::ring, .hybrid = true});
  compare(c, mixed_samples(c),
          {.cp = 8, .kind = CpKind::all_to_all_ring, .heads = 4, .hybrid = true});
}

TEST_CASE("ranks share a network whose heads share keys") {
  NetworkConfig c = with_heads(tiny_dit(), 8);
  c.architecture = &kMovieGen;
  c.own<models::MovieGenFields>().num_key_value_heads = 4;
  compare(c, mixed_samples(c), {.tp = 2});
  compare(c, mixed_samples(c), {.cp = 3, .recompute = Recompute::elementwise});
  compare(c, mixed_samples(c), {.tp = 2, .cp = 2, .recompute = Recompute::block});
  compare(c, mixed_samples(c), {.tp = 2, .cp = 2, .kind = CpKind::all_to_all});
  compare(c, mixed_samples(c), {.cp = 3, .kind = CpKind::ring, .recompute = Recompute::block});
  compare(c, mixed_samples(c),
          {.tp = 2, .cp = 2, .kind = CpKind::ring, .recompute = Recompute::elementwise});
  compare(c, mixed_samples(c),
          {.cp = 4, .kind = CpKind::all_to_all_ring, .heads = 2, .compute = DType::bf16});
}

TEST_CASE("ranks share a network with biases, clean frames and norms over all heads") {
  const NetworkConfig c = with_heads(tiny_wan(), 4);
  const auto with_times = [&](NetworkBatch batch) {
    for (models::NetworkSample& sample : batch.samples)
      sample.c_noise *= 1000;
    batch.samples.front().clean_frames = batch.samples.back().clean_frames = 1;
    return batch;
  };
  const NetworkBatch mixed = with_times(mixed_samples(c)), one = with_times(one_sample(c));
  compare(c, mixed, {.tp = 2});
  compare(c, mixed, {.cp = 3, .recompute = Recompute::elementwise});
  compare(c, mixed, {.tp = 2, .cp = 2, .kind = CpKind::all_to_all});
  compare(c, mixed, {.tp = 2, .cp = 2, .kind = CpKind::ring, .recompute = Recompute::block});
  compare(c, mixed, {.cp = 4, .kind = CpKind::all_to_all_ring, .heads = 2});
  compare(c, mixed, {.tp = 2, .cp = 2, .recompute = Recompute::elementwise, .adapters = 3});
  compare(c, one, {.tp = 2, .compute = DType::bf16});
  compare(c, one,
          {.cp = 4,
           .kind = CpKind::ring,
           .compute = DType::bf16,
           .recompute = Recompute::block_but_attention});
}

TEST_CASE("ranks send for attention what the formulas say") {
  NetworkConfig c = with_heads(tiny_dit(), 8);
  c.architecture = &kMovieGen;
  c.own<models::MovieGenFields>().num_key_value_heads = 4;
  NetworkBatch batch = one_sample(c);
  batch.samples = {{4, 4, 8, 24.f, 0.2f, 2}};  // 32 tokens
  batch.latents = noise_tensor({c.in_channels * 128}, 4);
  // S tokens of the pack; b bytes, r times.
  const std::int64_t S = 32, H = 8, G = 4, K = c.attention_head_dim, b = 2, layers = c.num_layers;
  for (const int tp : {1, 2})
    for (const int cp : {2, 4})
      for (const CpKind kind :
           {CpKind::gather, CpKind::all_to_all, CpKind::ring, CpKind::all_to_all_ring}) {
        const bool both = kind == CpKind::all_to_all_ring;
        if ((both && cp < 4) || tp * (both ? 2 : cp) > 4) continue;
        INFO("tp=" << tp << " cp=" << cp << ' ' << nn::cp_kind_name(kind));
        const std::int64_t keys = 2 * (cp - 1) * S / cp * (G * K / tp) * b;
        const auto dealt = [&](std::int64_t u) {  // to u ranks
          return (2 * H + 2 * G) * K / tp * (u - 1) * S / cp * b / u;
        };
        std::map<std::string, std::int64_t> expected;
        if (kind == CpKind::all_to_all) expected["cp"] = layers * dealt(cp);
        if (kind == CpKind::gather || kind == CpKind::ring) expected["cp"] = layers * keys;
        if (both) {
          expected["cp_heads"] = layers * dealt(2);
          expected["cp_ring"] = layers * 2 * (cp / 2 - 1) * (S / (cp / 2)) * (G * K / tp / 2) * b;
        }
        const Way way{tp, cp, kind, both ? 2 : 1, DType::bf16};
        for (const dist::Traffic& sent : sent_forward(c, batch, way))
          for (const auto& [axis, bytes] : expected)
            CHECK(sent.of(axis).bytes == bytes);
      }
}

TEST_CASE("ranks share adapters on every matrix, cut as the matrices are") {
  const NetworkConfig dit = tiny_dit(), stdit = with_heads(tiny_stdit(), 4);
  NetworkConfig moviegen = with_heads(tiny_dit(), 4);
  moviegen.architecture = &kMovieGen;
  moviegen.own<models::MovieGenFields>().num_key_value_heads = 2;
  for (const NetworkConfig& c : {dit, moviegen}) {
    compare(c, mixed_samples(c), {.tp = 2, .adapters = 3});
    compare(c, mixed_samples(c),
            {.tp = 2, .cp = 2, .recompute = Recompute::elementwise, .adapters = 3});
    compare(c, one_sample(c),
            {.tp = 2, .compute = DType::bf16, .recompute = Recompute::block, .adapters = 2});
  }
  compare(stdit, mixed_samples(stdit),
          {.tp = 2, .cp = 2, .kind = CpKind::all_to_all, .adapters = 1});
}

TEST_CASE("an adapter's part begins as that of the whole one") {
  const NetworkConfig c = tiny_dit();
  const auto drawn = [&](const NetworkLayout& layout) {
    auto network = models::make_network(c, 1, DType::f32, Device::cpu, false, layout);
    network->attach({{"transformer_blocks.0.attn1.to_out.0", 3, 1}}, true);
    return network;
  };
  const auto whole = drawn({});
  std::atomic<int> alike = 0, cut = 0;
  dist::thread_worlds(2, [&](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = 2;
    const Mesh mesh(world, sizes);
    const auto part = drawn({&mesh.group(Axes::tp), nullptr});
    for (std::size_t i = 0; i < 2; ++i) {
      const nn::Parameter &p = *part->adapters()[i], &all = *whole->adapters()[i];
      const Tensor expected = part_of_whole(all.value, p);
      alike += std::ranges::equal(p.value.floats(), expected.floats()) ? 1 : 0;
      cut += p.whole() ? 0 : 1;
    }
  });
  CHECK(alike == 4);
  CHECK(cut == 2);  // that of the columns
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
    refused(tiny_stdit(), {nullptr, &all, CpKind::ring}, "parallel.cp_kind=all_to_all can be");
    refused(tiny_stdit(), {nullptr, &all, CpKind::ring}, "parallel.hybrid=true");
    refused(tiny_dit(), {nullptr, &all, CpKind::ring, true},
            "which this network does not have: leave it out");
    refused(tiny_stdit(), {nullptr, &all, CpKind::all_to_all, true}, "cp_kind=gather can be");
    NetworkConfig few = with_heads(tiny_dit(), 6);
    few.architecture = &kMovieGen;
    few.own<models::MovieGenFields>().num_key_value_heads = 2;
    refused(few, {&all, nullptr}, "2 heads of keys and values are not shared by 3 ranks");
  });
}

// A diffusion transformer that several ranks share gives the output and the gradients of one rank.
// The ranks are threads; what they exchange is what MPI would (unit_dist).
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/half.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "models/dit/dit.h"
#include "support/noise.h"
#include "support/small_networks.h"

using namespace vfm;
using dist::Axes;
using dist::Mesh;
using models::CpKind;
using models::Dit;
using models::NetworkBatch;
using models::NetworkConfig;
using models::NetworkLayout;
using models::Recompute;

namespace {

// Three samples that differ in everything: of 18, 8 and 2 tokens.
NetworkBatch mixed_samples() {
  NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 0.4f, 3}, {1, 8, 4, 0.f, -0.3f, 1}, {2, 2, 2, 30.f, 0.1f, 5}};
  batch.latents = noise_tensor({3 * (72 + 32 + 8)}, 1);
  batch.text = noise_tensor({9, 10}, 2);
  return batch;
}

NetworkBatch one_sample() {
  NetworkBatch batch;
  batch.samples = {{3, 6, 6, 24.f, 0.2f, 2}};
  batch.latents = noise_tensor({3 * 108}, 4);
  batch.text = noise_tensor({2, 10}, 5);
  return batch;
}

// Values of a whole parameter, in which nothing is zero that would hide a gradient.
Tensor whole_value(const nn::Parameter& p) {
  const Tensor values = noise_tensor(p.placement.global, std::hash<std::string>()(p.name) % 1000);
  for (float& v : values.floats())
    v *= 0.2f;
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

Tensor cotangent_of(const NetworkBatch& batch) {
  return noise_tensor({batch.latents.elements() / 3 * 2}, 3);
}

Outcome pass(const Dit& dit, const NetworkBatch& batch) {
  nn::zero_gradients(dit.parameters());
  ops::Tape tape;
  Outcome outcome;
  outcome.output = dit.forward(tape, batch);
  tape.backward(outcome.output, cotangent_of(batch).reshape(outcome.output.shape()));
  return outcome;
}

Outcome alone(const NetworkConfig& config, const NetworkBatch& batch, DType compute) {
  const Dit dit(config, 1, compute);
  for (const nn::Parameter* p : dit.parameters())
    p->write(whole_value(*p));
  Outcome outcome = pass(dit, batch);
  for (const nn::Parameter* p : dit.parameters())
    outcome.gradients[p->name] = p->grad.clone();
  return outcome;
}

// The sums over ranks are what a training makes: of a part over the ranks that have the same part,
// of all else over all ranks.
Outcome shared(const NetworkConfig& config, const NetworkBatch& batch, DType compute, int tp,
               int cp, Recompute recompute, CpKind kind) {
  Outcome outcome;
  std::mutex mutex;
  dist::thread_worlds(tp * cp, [&](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = tp, sizes.cp = cp;
    const Mesh mesh(world, sizes);
    const NetworkLayout layout{&mesh.group(Axes::tp), &mesh.group(Axes::cp), kind};
    Dit dit(config, 1, compute, Device::cpu, true, layout);
    dit.set_recompute(recompute);
    for (const nn::Parameter* p : dit.parameters())
      p->write(part_of_whole(whole_value(*p), *p));
    const Outcome own = pass(dit, batch);
    mesh.group(Axes::tp | Axes::cp).all_reduce(own.output).wait();
    for (const nn::Parameter* p : dit.parameters())
      mesh.group(p->whole() ? Axes::tp | Axes::cp : Axes::cp).all_reduce(p->grad).wait();
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) outcome.output = own.output;
    for (const nn::Parameter* p : dit.parameters()) {
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

void compare(const NetworkBatch& batch, int tp, int cp, DType compute = DType::f32,
             Recompute recompute = Recompute::none, CpKind kind = CpKind::gather) {
  INFO("tp=" << tp << " cp=" << cp << ", kind " << static_cast<int>(kind) << ", recompute "
             << models::recompute_name(recompute));
  NetworkConfig config = tiny_dit();
  if (kind == CpKind::all_to_all) config.num_attention_heads = 2 * cp;
  const Outcome expected = alone(config, batch, compute),
                made = shared(config, batch, compute, tp, cp, recompute, kind);
  const bool rounded = compute == DType::bf16;
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

}  // namespace

TEST_CASE("ranks that share heads and widths give what one rank gives") {
  compare(mixed_samples(), 2, 1);
  compare(one_sample(), 2, 1, DType::bf16);
}

TEST_CASE("ranks that share tokens give what one rank gives") {
  compare(mixed_samples(), 1, 2);
  compare(mixed_samples(), 1, 3);  // a sample is shorter than that
  compare(one_sample(), 1, 4, DType::bf16);
}

TEST_CASE("ranks that exchange tokens for heads give what one rank gives") {
  for (const int cp : {2, 3})
    compare(mixed_samples(), 1, cp, DType::f32, Recompute::none, CpKind::all_to_all);
  compare(mixed_samples(), 2, 2, DType::f32, Recompute::block, CpKind::all_to_all);
  compare(one_sample(), 1, 4, DType::bf16, Recompute::elementwise, CpKind::all_to_all);
}

TEST_CASE("ranks that share both give what one rank gives, whatever is computed again") {
  for (const Recompute recompute :
       {Recompute::none, Recompute::elementwise, Recompute::block_but_attention, Recompute::block})
    compare(mixed_samples(), 2, 2, DType::f32, recompute);
  compare(mixed_samples(), 2, 2, DType::bf16, Recompute::elementwise);
}

TEST_CASE("a layout that the network cannot have is refused with the nearest one") {
  dist::thread_worlds(3, [](dist::World& world) {
    dist::Layout sizes;
    sizes.tp = 3;
    const Mesh mesh(world, sizes);
    const NetworkLayout layout{&mesh.group(Axes::tp), nullptr};
    const NetworkLayout heads{nullptr, &mesh.group(Axes::tp), CpKind::all_to_all};
    CHECK_THROWS_WITH(Dit(tiny_dit(), 1, DType::f32, Device::cpu, true, heads),
                      Catch::Contains("parallel.cp_kind=gather can be"));
    CHECK_THROWS_WITH(Dit(tiny_dit(), 1, DType::f32, Device::cpu, true, layout),
                      Catch::Contains("the nearest is parallel.tp=2"));
  });
}

// The diffusion transformer against diffusers' (scripts/golden/dit.py), and against itself: packs,
// recomputation, bf16, gradients that reach everything.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit/dit.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "models/dit/architecture.h"
#include "models/dit/network_json.h"
#include "support/noise.h"
#include "support/small_networks.h"

using namespace vfm;
using models::Dit;
using models::NetworkBatch;
using models::NetworkConfig;
using models::NetworkSample;
using nn::Recompute;

namespace {

// Runs forward, and backward from `cotangent`; gradients start at zero.
Tensor dit_step(const Dit& dit, const NetworkBatch& batch, const Tensor& cotangent) {
  nn::zero_gradients(dit.parameters());
  ops::Tape tape;
  const Tensor output = dit.forward(tape, batch);
  tape.backward(output, cotangent.reshape(output.shape()));
  return output;
}

std::map<std::string, Tensor> gradients(const Dit& dit) {
  std::map<std::string, Tensor> result;
  for (const nn::Parameter* p : dit.parameters())
    result[p->name] = p->grad.clone();
  return result;
}

// Three samples that differ in everything.
NetworkBatch mixed_pack() {
  NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 0.4f, 3}, {1, 8, 4, 0.f, -0.3f, 1}, {2, 2, 4, 30.f, 0.1f, 5}};
  batch.latents = noise_tensor({3 * (72 + 32 + 16)}, 1);
  batch.text = noise_tensor({9, 10}, 2);
  return batch;
}

}  // namespace

TEST_CASE("traps 6, 8: positions and rotation; output and gradients are those of diffusers") {
  const Golden golden("dit_tiny");
  NetworkBatch batch;
  batch.samples = {{3, 4, 8, 12.f, 0.31f, 4}, {1, 6, 4, 0.f, -0.47f, 1}};
  batch.latents = flat(golden.joined("input", ".latent", 2));
  batch.text = Tensor::from(golden.joined("input", ".text", 2), {5, 10});
  for (const Recompute recompute :
       {Recompute::none, Recompute::block_but_attention, Recompute::block}) {
    Dit model(tiny_dit(), 1);
    golden.load_weights(model.parameters());
    model.set_recompute(recompute);
    const Tensor output = dit_step(model, batch, flat(golden.joined("cotangent", "", 2)));
    CHECK(distance(output.floats(), golden.joined("output", "", 2)) < 1e-5);
    for (const nn::Parameter* p : model.parameters()) {
      INFO(p->name);
      CHECK(distance(p->grad.floats(), golden["gradient." + p->name]) < 1e-4);
    }
  }
}

TEST_CASE("fault 8: a pack is its samples one by one") {
  const Dit dit(tiny_dit(), 3);
  randomise(dit.parameters());
  const NetworkBatch pack = mixed_pack();
  const Tensor cotangent = noise_tensor({2 * (72 + 32 + 16)}, 3);
  const Tensor whole = dit_step(dit, pack, cotangent);
  const auto packed = gradients(dit);

  nn::zero_gradients(dit.parameters());
  std::int64_t position = 0, text = 0;
  for (const NetworkSample& s : pack.samples) {
    const std::int64_t positions = std::int64_t{s.frames} * s.height * s.width;
    NetworkBatch one;
    one.samples = {s};
    one.latents = pack.latents.rows(3 * position, 3 * (position + positions)).clone();
    one.text = pack.text.rows(text, text + s.text_tokens).clone();
    ops::Tape tape;
    const Tensor output = dit.forward(tape, one);
    CHECK(distance(output.floats(), whole.rows(2 * position, 2 * (position + positions)).floats()) <
          1e-5);
    tape.backward(output, cotangent.rows(2 * position, 2 * (position + positions)));
    position += positions;
    text += s.text_tokens;
  }
  for (const auto& [name, gradient] : gradients(dit)) {
    INFO(name);
    CHECK(distance(packed.at(name).floats(), gradient.floats()) < 1e-4);
  }
}

TEST_CASE("fault 7: each sample of a pack has its own noise level, frame rate and text") {
  const Dit dit(tiny_dit(), 3);
  randomise(dit.parameters());
  const NetworkBatch pack = mixed_pack();
  ops::Tape silent(false);
  const Tensor before = dit.forward(silent, pack);
  const auto changed = [&](const NetworkBatch& other) {
    const Tensor after = dit.forward(silent, other);
    std::vector<bool> differs;
    for (const auto& [begin, end] : {std::pair{0, 144}, {144, 208}, {208, 240}})
      differs.push_back(
          distance(after.rows(begin, end).floats(), before.rows(begin, end).floats()) > 1e-4);
    return differs;
  };
  NetworkBatch other = pack;
  other.samples[1].c_noise += 0.5f;
  CHECK(changed(other) == std::vector<bool>{false, true, false});
  other = pack;
  other.samples[0].fps = 24;
  CHECK(changed(other) == std::vector<bool>{true, false, false});
  other = pack;
  other.text = pack.text.clone();
  other.text.floats()[85] += 3;  // of the last sample
  CHECK(changed(other) == std::vector<bool>{false, false, true});
  other = pack;
  other.latents = pack.latents.clone();
  other.latents.floats()[0] += 3;
  CHECK(changed(other) == std::vector<bool>{true, false, false});
}

TEST_CASE("recomputing gives the same gradients to the last bit, and keeps less") {
  const DType compute = GENERATE(DType::f32, DType::bf16);
  for (const auto& [recompute, offload] : {std::pair{Recompute::elementwise, false},
                                           {Recompute::block_but_attention, false},
                                           {Recompute::block_but_attention, true},
                                           {Recompute::block, false},
                                           {Recompute::block, true}}) {
    Dit dit(tiny_dit(), 4, compute);
    randomise(dit.parameters());
    const Tensor cotangent = noise_tensor({240}, 3);
    const Tensor output = dit_step(dit, mixed_pack(), cotangent);
    const auto kept = gradients(dit);
    dit.set_recompute(recompute, offload);
    const Tensor again = dit_step(dit, mixed_pack(), cotangent);
    CHECK(std::memcmp(output.raw(), again.raw(), output.bytes()) == 0);
    for (const auto& [name, gradient] : gradients(dit)) {
      INFO(name);
      CHECK(std::memcmp(kept.at(name).raw(), gradient.raw(), gradient.bytes()) == 0);
    }
  }
}

TEST_CASE("trap 6: learned positions are f32 in a bf16 model too") {
  const Dit dit(tiny_dit(), 4, DType::bf16);
  for (const nn::Parameter* p : dit.parameters())
    if (p->name.starts_with("learnable_pos_embed")) CHECK(p->value.dtype() == DType::f32);
}

TEST_CASE("two runs of a step give the same bits") {
  const Dit a(tiny_dit(), 4), b(tiny_dit(), 4);
  const Tensor cotangent = noise_tensor({240}, 3);
  dit_step(a, mixed_pack(), cotangent);
  dit_step(b, mixed_pack(), cotangent);
  const auto first = gradients(a), second = gradients(b);
  for (const auto& [name, gradient] : first)
    CHECK(std::memcmp(gradient.raw(), second.at(name).raw(), gradient.bytes()) == 0);
}

TEST_CASE(
    "faults 6, 9: every parameter gets a gradient, also of the shared modulation, the time "
    "embedding's norm and the positions") {
  const Dit dit(tiny_dit(), 5);
  randomise(dit.parameters());
  dit_step(dit, mixed_pack(), noise_tensor({240}, 3));
  for (const nn::Parameter* p : dit.parameters()) {
    INFO(p->name);
    const auto values = p->grad.floats();
    CHECK(std::ranges::any_of(values, [](float v) { return v != 0; }));
    CHECK(std::ranges::all_of(values, [](float v) { return std::isfinite(v); }));
  }
}

// Against the slope of the output itself, in size too: an optimizer that divides by the gradient's
// size would hide a factor.
TEST_CASE(
    "faults 2 to 5: gradients are whole sums over blocks (time embedding), tokens (modulation), "
    "heads (norms of queries and keys), and have no factor below the head") {
  const Dit dit(tiny_dit(), 6);
  randomise(dit.parameters());
  const NetworkBatch pack = mixed_pack();
  const Tensor cotangent = noise_tensor({240}, 3);
  dit_step(dit, pack, cotangent);
  ops::Tape silent(false);
  const auto objective = [&] {
    const Tensor output = dit.forward(silent, pack);
    double sum = 0;
    for (std::size_t i = 0; i < 240; ++i)
      sum += double{output.floats()[i]} * cotangent.floats()[i];
    return sum;
  };
  for (nn::Parameter* p : dit.parameters()) {
    INFO(p->name);
    const Tensor direction = noise_tensor(p->value.shape(), random_key(p->name));
    double expected = 0;
    for (std::size_t i = 0; i < direction.floats().size(); ++i)
      expected += double{direction.floats()[i]} * p->grad.floats()[i];
    const Tensor start = p->value.clone();
    const double h = 2e-3 / std::sqrt(static_cast<double>(start.elements()));
    std::array<double, 2> sides{};
    for (int side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < start.floats().size(); ++i)
        p->value.floats()[i] =
            start.floats()[i] + static_cast<float>((side == 0 ? -h : h) * direction.floats()[i]);
      sides[static_cast<std::size_t>(side)] = objective();
    }
    std::memcpy(p->value.raw(), start.raw(), start.bytes());
    CHECK((sides[1] - sides[0]) / (2 * h) == Approx(expected).epsilon(0.02).margin(0.3));
  }
}

TEST_CASE("bf16 is f32 to its precision") {
  const Dit full(tiny_dit(), 7), half(tiny_dit(), 7, DType::bf16);
  randomise(full.parameters());
  randomise(half.parameters());
  const Tensor cotangent = noise_tensor({240}, 3);
  const Tensor a = dit_step(full, mixed_pack(), cotangent);
  const Tensor b = dit_step(half, mixed_pack(), cotangent);
  CHECK(distance(b.floats(), a.floats()) < 0.05);
  const auto expected = gradients(full), got = gradients(half);
  for (const auto& [name, gradient] : expected) {
    INFO(name);
    CHECK(distance(got.at(name).floats(), gradient.floats()) < 0.1);
  }
}

TEST_CASE("weights depend on seed and name alone") {
  NetworkConfig deeper = tiny_dit();
  deeper.num_layers = 3;
  const Dit a(tiny_dit(), 9), b(deeper, 9), c(tiny_dit(), 10);
  const auto value = [](const Dit& dit, const std::string& name) {
    for (const nn::Parameter* p : dit.parameters())
      if (p->name == name) return p->value;
    FAIL(name);
    return Tensor();
  };
  const std::string q = "transformer_blocks.1.attn1.to_q.weight";
  CHECK(std::ranges::equal(value(a, q).floats(), value(b, q).floats()));
  CHECK_FALSE(std::ranges::equal(value(a, q).floats(), value(c, q).floats()));
  const float bound = std::sqrt(6.f / 48);
  const auto [low, high] = std::ranges::minmax(value(a, q).floats());
  CHECK((low >= -bound && low < -0.9f * bound && high <= bound && high > 0.9f * bound));
  for (const float v : value(a, "norm_out.linear_2.weight").floats())
    CHECK(v == 0);
  CHECK_FALSE(a.parameters().back()->name.empty());
  for (const nn::Parameter* p : a.parameters()) {
    INFO(p->name);
    const bool table = p->value.dims() == 1 || p->name.starts_with("learnable_pos_embed");
    CHECK(p->decay == !table);
  }
}

TEST_CASE("a configuration survives its JSON and refuses nonsense") {
  const NetworkConfig c = tiny_dit();
  const Json json = models::network_config_to_json(c);
  CHECK(json["_class_name"] == "CosmosTransformer3DModel");
  CHECK(models::network_config_to_json(models::network_config_from_json(json)) == json);
  Json null_positions = json;
  null_positions["extra_pos_embed_type"] = nullptr;
  CHECK_FALSE(models::network_config_from_json(null_positions)
                  .own<models::DitFields>()
                  .learnable_positions);
  const Json one_matrix = models::network_config_to_json(with_full_adaln(c));
  CHECK(one_matrix["adaln_lora_dim"].is_null());
  CHECK(models::network_config_from_json(one_matrix).own<models::DitFields>().adaln_lora_dim == 0);
  CHECK(models::network_config_from_json(Json::object()).own<models::DitFields>().adaln_lora_dim ==
        256);
  CHECK(models::network_config_from_json(Json::object()).num_layers == 28);
  for (const char* bad :
       {R"({"num_layers":0})", R"({"attention_head_dim":25})", R"({"attention_head_dim":10})",
        R"({"max_size":[1,2]})", R"({"patch_size":[0,2,2]})", R"({"rope_scale":[1,-1,1]})",
        R"({"extra_pos_embed_type":"sincos"})", R"({"num_layers":"many"})", R"([])",
        R"({"num_layers":100000000000})", R"({"mlp_ratio":0})", R"({"adaln_lora_dim":0})"}) {
    INFO(bad);
    CHECK_THROWS_AS(models::network_config_from_json(parse_json(bad, "test")), Error);
  }
}

TEST_CASE("a batch that does not fit is refused") {
  const Dit dit(tiny_dit(), 1);
  ops::Tape silent(false);
  NetworkBatch batch = mixed_pack();
  batch.samples[0].height = 5;
  CHECK_THROWS_AS(dit.forward(silent, batch), Error);
  batch = mixed_pack();
  batch.samples[0].text_tokens = 0;
  CHECK_THROWS_AS(dit.forward(silent, batch), Error);
  batch = mixed_pack();
  batch.latents = noise_tensor({7}, 1);
  CHECK_THROWS_AS(dit.forward(silent, batch), Error);
  batch = mixed_pack();
  batch.samples[0] = {6, 4, 3, 12.f, 0.4f, 3};  // longer than the position table
  CHECK_THROWS_AS(dit.forward(silent, batch), Error);
  CHECK_THROWS_AS(dit.forward(silent, NetworkBatch{}), Error);
}

// MovieGen-Llama and ST-DiT against a second implementation (scripts/golden/networks.py), and
// against themselves: packs, recomputation, bf16, who sees whom.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "base/one_thread.h"
#include "base/philox.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/dit/network.h"
#include "models/dit/network_json.h"
#include "models/moviegen/moviegen.h"
#include "support/noise.h"
#include "support/small_networks.h"
#include "tensor/allocator.h"

using namespace vfm;
using models::Architecture;
using models::DiffusionNetwork;
using models::kDit;
using models::kMovieGen;
using models::kStdit;
using models::NetworkBatch;
using models::NetworkConfig;
using models::NetworkSample;
using nn::Recompute;

namespace {

NetworkConfig moviegen() {
  NetworkConfig c;
  c.architecture = &kMovieGen;
  c.in_channels = 3;
  c.out_channels = 2;
  c.num_attention_heads = 4;
  c.attention_head_dim = 4;
  c.own<models::MovieGenFields>().num_key_value_heads = 2;
  c.num_layers = 2;
  c.mlp_ratio = 1.5;
  c.text_embed_dim = 6;
  c.max_size = {4, 8, 8};
  return c;
}

NetworkConfig normed_moviegen() {
  NetworkConfig c = moviegen();
  c.own<models::MovieGenFields>().qk_norm = true;
  return c;
}

std::vector<NetworkConfig> networks_of_each_kind() {
  return {moviegen(), normed_moviegen(), tiny_stdit(), with_full_adaln(tiny_stdit()), tiny_wan()};
}

// A video, an image and another video.
std::vector<NetworkSample> network_samples() {
  return {{3, 4, 8, 12.f, 0.31f, 4}, {1, 6, 4, 0.f, -0.47f, 1}, {2, 2, 4, 30.f, 0.9f, 2}};
}

NetworkBatch make_batch(const NetworkConfig& c, const std::vector<float>& latents,
                        const std::vector<float>& text) {
  NetworkBatch batch;
  batch.samples = network_samples();
  batch.latents = flat(latents);
  batch.text = Tensor::from(text, {7, c.text_embed_dim});
  return batch;
}

NetworkBatch noisy_batch(const NetworkConfig& c) {
  return make_batch(c, noise(static_cast<std::size_t>(136 * c.in_channels), 1), noise(42, 2));
}

std::unique_ptr<DiffusionNetwork> random_network(const NetworkConfig& c,
                                                 DType compute = DType::f32) {
  auto network = models::make_network(c, 1, compute);
  randomise(network->parameters());
  return network;
}

nn::Parameter& parameter(const DiffusionNetwork& network, const std::string& name) {
  for (nn::Parameter* p : network.parameters())
    if (p->name == name) return *p;
  throw std::runtime_error(name);
}

void check_golden(const NetworkConfig& c, const std::string& name) {
  const Golden golden(name);
  const auto network = models::make_network(c, 1);
  golden.load_weights(network->parameters());
  const NetworkBatch batch =
      make_batch(c, golden.joined("input", ".latent", 3), golden.joined("input", ".text", 3));
  for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                    Recompute::block_but_attention, Recompute::block}) {
    network->set_recompute(recompute);
    const auto output =
        step(*network, network->parameters(), batch, golden.joined("cotangent", "", 3));
    CHECK(distance(output, golden.joined("output", "", 3)) < 1e-5);
    for (const nn::Parameter* p : network->parameters()) {
      INFO(p->name);
      CHECK(distance(p->grad.floats(), golden["gradient." + p->name]) < 1e-4);
    }
  }
}

}  // namespace

TEST_CASE("moviegen: output and gradients are those of a second implementation") {
  check_golden(moviegen(), "moviegen_tiny");
  check_golden(normed_moviegen(), "moviegen_normed");
}

TEST_CASE("stdit: output and gradients are those of a second implementation") {
  check_golden(tiny_stdit(), "stdit_tiny");
  check_golden(with_full_adaln(tiny_stdit()), "stdit_full");
}

TEST_CASE("modulation by one matrix is that by two of which the first is one") {
  for (const NetworkConfig& c : {tiny_stdit(), tiny_dit()}) {
    INFO(c.architecture->name);
    NetworkConfig wide = c;
    wide.own<models::DitFields>().adaln_lora_dim = c.width();
    const auto full = random_network(with_full_adaln(c)), lora = random_network(wide);
    for (const nn::Parameter* p : full->parameters())
      if (!p->name.starts_with("time_embed.")) CHECK(p->name.find("linear_1") == std::string::npos);
    for (const nn::Parameter* p : lora->parameters())
      if (p->name.find("norm") != std::string::npos && p->name.ends_with("linear_1.weight")) {
        const Tensor one(p->shape());
        for (std::int64_t i = 0; i < p->shape()[0]; ++i)
          for (std::int64_t j = 0; j < p->shape()[1]; ++j)
            one.floats()[static_cast<std::size_t>(i * p->shape()[1] + j)] = i == j ? 1.f : 0.f;
        p->write(one);
      }
    NetworkBatch batch = make_batch(c, noise(static_cast<std::size_t>(136 * c.in_channels), 1),
                                    noise(static_cast<std::size_t>(7 * c.text_embed_dim), 2));
    const std::vector<float> cotangent = noise(136 * 2, 3);
    const std::vector<float> wanted = step(*lora, lora->parameters(), batch, cotangent);
    CHECK(distance(step(*full, full->parameters(), batch, cotangent), wanted) < 1e-6);
    for (const nn::Parameter* p : full->parameters()) {
      INFO(p->name);
      CHECK(distance(p->grad.floats(), parameter(*lora, p->name).grad.floats()) < 1e-5);
    }
  }
}

TEST_CASE("moviegen: normed queries and keys have no length of their own") {
  const NetworkConfig c = normed_moviegen();
  const NetworkBatch batch = noisy_batch(c);
  const auto network = random_network(c);
  const std::vector<float> before = output_of(*network, batch);
  for (const char* name : {"attn1.to_q", "attn1.to_k", "attn2.to_q", "attn2.to_k"}) {
    INFO(name);
    const nn::Parameter& p =
        parameter(*network, std::string("transformer_blocks.1.") + name + ".weight");
    for (float& v : p.value.floats())
      v *= 16;
    CHECK(distance(output_of(*network, batch), before) < 1e-3);
  }
  // Off is the network of before, to its names.
  const auto plain = models::make_network(moviegen(), 1);
  for (const nn::Parameter* p : plain->parameters())
    CHECK(p->name.find(".norm_") == std::string::npos);
  CHECK(network->parameters().size() == plain->parameters().size() + 2 * 2 * 2);
}

TEST_CASE("fault 10: MovieGen's cross-attention has a residual") {
  // Without it, what cross-attention gives would take the place of the stream: with a zero output
  // matrix nothing of the latents, and of what self-attention found, would reach the end.
  const NetworkConfig c = moviegen();
  const auto network = random_network(c);
  for (const char* layer : {"0", "1"}) {
    const nn::Parameter& out =
        parameter(*network, std::string("transformer_blocks.") + layer + ".attn2.to_out.weight");
    std::ranges::fill(out.value.floats(), 0.f);
  }
  const NetworkBatch batch = noisy_batch(c);
  const std::vector<float> before = output_of(*network, batch);
  NetworkBatch other = batch;
  other.text = Tensor::from(noise(42, 3), {7, 6});
  CHECK(output_of(*network, other) == before);
  other = batch;
  other.latents = flat(noise(136 * 3, 4));
  CHECK(distance(output_of(*network, other), before) > 1e-2);
  step(*network, network->parameters(), batch, noise(272, 5));
  for (const char* name : {"attn1.to_q", "attn1.to_out", "ff.down_proj"}) {
    INFO(name);
    const auto& p = parameter(*network, std::string("transformer_blocks.0.") + name + ".weight");
    CHECK(std::ranges::any_of(p.grad.floats(), [](float g) { return g != 0; }));
  }
}

TEST_CASE("what follows from places is made once for a clip, and anew for another one") {
  for (const NetworkConfig& c : {tiny_stdit(), tiny_dit()}) {
    const auto network = random_network(c);
    NetworkBatch batch = make_batch(c, noise(static_cast<std::size_t>(136 * c.in_channels), 1),
                                    noise(static_cast<std::size_t>(7 * c.text_embed_dim), 2));
    const auto fresh = [&] { return output_of(*random_network(c), batch); };
    const std::vector<float> first = output_of(*network, batch);
    const std::size_t kept = cpu_memory().current;
    batch.samples[0].c_noise = 0.2f;  // the next step of sampling
    const std::vector<float> next = output_of(*network, batch);
    CHECK(cpu_memory().current == kept);
    CHECK(next == fresh());
    CHECK(next != first);
    std::vector<NetworkSample> others(3, batch.samples[0]);
    others[0].fps = 24;
    others[1].position_step[2] = 0.5;
    others[2].height = 8, others[2].width = 4;
    for (const NetworkSample& other : others) {
      batch.samples[0] = other;
      const std::vector<float> changed = output_of(*network, batch);
      CHECK(changed == fresh());
      CHECK(changed != next);
    }
    // Training has its own: what is kept stays.
    const std::size_t before = cpu_memory().current;
    step(*network, network->parameters(), batch, noise(136 * 2, 3));
    CHECK(cpu_memory().current == before);
  }
}

TEST_CASE("stdit: who sees whom in space and in time") {
  // With the full attention and the other one shut off, a change in one token of a video must reach
  // its frame alone, or its pixel alone.
  const NetworkConfig c = tiny_stdit();
  for (const bool spatial : {true, false}) {
    const auto network = random_network(c);
    for (const char* name : {"attn1", spatial ? "attn_temporal" : "attn_spatial"}) {
      const nn::Parameter& out =
          parameter(*network, std::string("transformer_blocks.0.") + name + ".to_out.0.weight");
      std::ranges::fill(out.value.floats(), 0.f);
    }
    NetworkBatch batch = noisy_batch(c);
    const std::vector<float> before = output_of(*network, batch);
    // Channel 0, frame 1, row 2, column 5 of the first sample, 3 x 4 x 8.
    batch.latents.floats()[(1 * 4 + 2) * 8 + 5] += 1;
    const std::vector<float> after = output_of(*network, batch);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool first = i < 192;
      const std::size_t frame = i % 96 / 32, row = i % 32 / 8, column = i % 8;
      const bool reached = first && (spatial ? frame == 1 : row / 2 == 1 && column / 2 == 2);
      INFO("value " << i);
      CHECK((after[i] != before[i]) == reached);
    }
  }
}

TEST_CASE("networks: a pack is its samples one by one, and is the same again in bf16") {
  for (const NetworkConfig& c : networks_of_each_kind()) {
    INFO(c.architecture->name);
    const auto network = random_network(c);
    const NetworkBatch pack = noisy_batch(c);
    const std::vector<float> whole = output_of(*network, pack);
    std::int64_t latent = 0, text = 0, out = 0;
    for (const NetworkSample& s : pack.samples) {
      const std::int64_t places = std::int64_t{s.frames} * s.height * s.width;
      NetworkBatch one;
      one.samples = {s};
      one.latents = pack.latents.rows(latent, latent + places * c.in_channels).clone();
      one.text = pack.text.rows(text, text + s.text_tokens).clone();
      const std::vector<float> alone = output_of(*network, one);
      CHECK(distance(alone, std::span(whole).subspan(static_cast<std::size_t>(out), alone.size())) <
            1e-5);
      latent += places * c.in_channels;
      out += places * c.out_channels;
      text += s.text_tokens;
    }
    CHECK(distance(output_of(*random_network(c, DType::bf16), pack), whole) < 0.05);
  }
}

TEST_CASE("networks: every parameter is trained; recomputation changes no bit") {
  for (const NetworkConfig& c : networks_of_each_kind()) {
    INFO(c.architecture->name);
    const auto network = random_network(c);
    const std::vector<float> cotangent = noise(272, 5);
    step(*network, network->parameters(), noisy_batch(c), cotangent);
    std::map<std::string, Tensor> kept;
    for (const nn::Parameter* p : network->parameters()) {
      INFO(p->name);
      CHECK(std::ranges::any_of(p->grad.floats(), [](float g) { return g != 0; }));
      kept[p->name] = p->grad.clone();
    }
    for (const auto& [recompute, offload] : {std::pair{Recompute::elementwise, false},
                                             {Recompute::elementwise, true},
                                             {Recompute::block_but_attention, false},
                                             {Recompute::block_but_attention, true},
                                             {Recompute::block, false},
                                             {Recompute::block, true}}) {
      network->set_recompute(recompute, offload);
      step(*network, network->parameters(), noisy_batch(c), cotangent);
      for (const nn::Parameter* p : network->parameters()) {
        INFO(p->name << " " << nn::recompute_name(recompute) << " " << offload);
        CHECK(std::memcmp(p->grad.raw(), kept[p->name].raw(), p->grad.bytes()) == 0);
      }
    }
  }
}

TEST_CASE("networks: a config.json names its type and comes back") {
  for (const NetworkConfig& c : networks_of_each_kind()) {
    const Json json = models::network_config_to_json(c);
    const NetworkConfig back = models::network_config_from_json(json);
    CHECK(back.architecture == c.architecture);
    CHECK(models::network_config_to_json(back) == json);
    CHECK(back.key_value_heads() == c.key_value_heads());
    CHECK(back.hidden() == c.hidden());
    CHECK(back.own<models::DitFields>().adaln_lora_dim ==
          (c.architecture == &kMovieGen ? 256 : c.own<models::DitFields>().adaln_lora_dim));
    CHECK(back.own<models::MovieGenFields>().qk_norm == c.own<models::MovieGenFields>().qk_norm);
  }
  CHECK_FALSE(models::network_config_to_json(moviegen()).contains("qk_norm"));
  CHECK(models::network_config_to_json(with_full_adaln(tiny_stdit()))["adaln_lora_dim"].is_null());
  CHECK_THROWS_AS(models::network_config_from_json({{"_class_name", "UNet2DModel"}}), Error);
  NetworkConfig odd = moviegen();
  odd.own<models::MovieGenFields>().num_key_value_heads = 3;
  CHECK_THROWS_AS(odd.validate(), Error);
  CHECK_THROWS_AS(models::find_architecture("unet"), Error);
  CHECK_THROWS_AS(random_network(moviegen())->set_inference_fp8({.linear = true}), Error);
}

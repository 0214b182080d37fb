// Wan's transformer against diffusers' (scripts/golden/wan.py), its names in other programs, clean
// frames, and what of it is rounded.
// SPDX-License-Identifier: Apache-2.0
#include "models/wan/wan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/safetensors.h"
#include "models/dit/architecture.h"
#include "models/dit/fp8.h"
#include "models/dit/lora.h"
#include "models/dit/network_json.h"
#include "models/folder/hf_names.h"
#include "models/folder/lora_names.h"
#include "support/noise.h"
#include "support/small_networks.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;
using Catch::Contains;
using nn::Recompute;

namespace {

const TensorForm& form_there() {
  return *kWan.foreign->written;
}

/// A tiny network of diffusers, and samples with what it makes of them.
struct WanGolden {
  explicit WanGolden(const std::string& name)
      : golden("wan/" + name), set(VFM_GOLDEN, "wan/" + name) {
    config = network_config_from_json(parse_json(set.metadata().at("config"), name));
    const Json samples = parse_json(set.metadata().at("samples"), name);
    std::int64_t rows = 0;
    for (const Json& one : samples) {
      NetworkSample sample;
      sample.frames = one["size"][0], sample.height = one["size"][1], sample.width = one["size"][2];
      sample.fps = 16;  // is of no matter
      sample.c_noise = one["time"];
      sample.text_tokens = one["text"];
      sample.clean_frames = one.value("clean", 0);
      rows += sample.text_tokens;
      batch.samples.push_back(sample);
    }
    batch.latents = flat(all("input", ".latent"));
    batch.text = Tensor::from(all("input", ".text"), {rows, config.text_embed_dim});
  }
  std::vector<float> all(const std::string& prefix, const std::string& suffix = "") const {
    return golden.joined(prefix, suffix, batch.samples.size());
  }
  std::unique_ptr<DiffusionNetwork> network() const {
    auto made = make_network(config, 1);
    for (const nn::Parameter* p : made->parameters()) {
      INFO(p->name);
      const io::TensorView& there = golden.view("weight." + name_there(form_there(), p->name));
      if (p->name == "patch_embed.proj.weight")
        CHECK(there.shape == form_there().reshaped[0].there(config));
      else
        CHECK(there.shape == p->shape());
      p->write(Tensor::from(golden[there.name], p->shape()));
    }
    const auto theirs = std::ranges::count_if(set.tensors(), [](const io::TensorView& tensor) {
      return tensor.name.starts_with("weight.");
    });
    CHECK(theirs == static_cast<std::ptrdiff_t>(made->parameters().size()));
    return made;
  }

  Golden golden;
  io::SafetensorsSet set;
  NetworkConfig config;
  NetworkBatch batch;
};

NetworkBatch wan_batch(const NetworkConfig& c) {
  NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 700.f, 3}, {1, 8, 4, 0.f, 40.f, 1}};
  batch.latents = noise_tensor({c.in_channels * (72 + 32)}, 1);
  batch.text = noise_tensor({4, c.text_embed_dim}, 2);
  return batch;
}

std::unique_ptr<DiffusionNetwork> random_wan(const NetworkConfig& c, DType compute = DType::f32) {
  auto network = make_network(c, 1, compute);
  randomise(network->parameters());
  return network;
}

const nn::Parameter& wan_parameter(const DiffusionNetwork& network, const std::string& name) {
  const auto found = std::ranges::find(network.parameters(), name, &nn::Parameter::name);
  INFO(name);
  REQUIRE(found != network.parameters().end());
  return **found;
}

void fill(const DiffusionNetwork& network, const std::string& name, float value) {
  const nn::Parameter& p = wan_parameter(network, name);
  const Tensor values(p.shape());
  std::ranges::fill(values.floats(), value);
  p.write(values);
}

// Its width is made of heads that FP8's attention takes.
NetworkConfig middle_wan() {
  NetworkConfig c = tiny_wan();
  c.attention_head_dim = 64;
  c.text_embed_dim = 16;
  c.own<WanFields>().ffn_dim = 160;
  return c;
}

class SizesOfNetwork final : public TensorSizes {
 public:
  explicit SizesOfNetwork(const NetworkConfig& config) {
    const auto network = make_network(config, 0, DType::bf16, Device::cpu, false);
    for (const nn::Parameter* p : network->parameters())
      shapes[p->name] = p->shape();
    shapes["patch_embed.proj.weight"] = form_there().reshaped[0].there(config);
  }
  bool has(const std::string& name) const override { return shapes.contains(name); }
  int size(const std::string& name, std::size_t dim) const override {
    return static_cast<int>(shapes.at(name).at(dim));
  }
  int count(const std::string& before, const std::string& after) const override {
    int number = 0;
    while (has(before + std::to_string(number) + after))
      ++number;
    return number;
  }
  [[noreturn]] void refuse(const std::string& why) const override { fail_usage("{}", why); }

  std::map<std::string, Shape> shapes;
};

}  // namespace

TEST_CASE("wan: output and gradients are those of diffusers, whatever is computed again") {
  for (const char* name : {"t2v", "ti2v", "i2v"}) {
    const WanGolden golden(name);
    const auto network = golden.network();
    for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                      Recompute::block_but_attention, Recompute::block}) {
      network->set_recompute(recompute);
      const std::vector<float> output =
          step(*network, network->parameters(), golden.batch, golden.all("cotangent"));
      const double apart = distance(output, golden.all("output"));
      INFO(name << ": " << apart);
      CHECK(apart < 1e-5);
      for (const nn::Parameter* p : network->parameters()) {
        const std::string there = name_there(form_there(), p->name);
        const double off = distance(p->grad.floats(), golden.golden["gradient." + there]);
        INFO(there << ": " << off);
        CHECK(off < 1e-4);
      }
    }
  }
}

TEST_CASE("wan: frames are clean alone where the batch says so") {
  const NetworkConfig c = tiny_wan();
  const auto network = random_wan(c);
  NetworkBatch batch = wan_batch(c);
  const std::vector<float> noisy = output_of(*network, batch);
  batch.samples[0].clean_frames = 2;
  const std::vector<float> given = output_of(*network, batch);
  // Attention carries it to the other frame, and nothing to the other sample.
  const std::size_t first = 2 * 72;
  CHECK_FALSE(std::equal(given.begin(), given.begin() + first, noisy.begin()));
  CHECK(std::equal(given.begin() + first, given.end(), noisy.begin() + first));
  // All frames clean are frames at time 0.
  batch.samples[0].clean_frames = 3;
  const std::vector<float> clean = output_of(*network, batch);
  batch.samples[0].clean_frames = 0;
  batch.samples[0].c_noise = 0;
  CHECK(output_of(*network, batch) == clean);
  // The same with levels that come as a tensor.
  batch = wan_batch(c);
  batch.c_noise = batch.noise_levels(Device::cpu);
  batch.samples[0].clean_frames = 2;
  CHECK(output_of(*network, batch) == given);
}

TEST_CASE("clean frames are refused of networks and samples that have none") {
  ops::Tape silent(false);
  const auto refused = [&](const NetworkConfig& c, int clean) {
    NetworkBatch batch = wan_batch(c);
    batch.samples[0].clean_frames = clean;
    try {
      batch.check(c);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused(tiny_wan(), 3).empty());
  CHECK_THAT(refused(tiny_wan(), 4), Contains("4 of 3 latent frames"));
  CHECK_THAT(refused(tiny_wan(), -1), Contains("-1 of 3 latent frames"));
  CHECK_THAT(refused(tiny_dit(), 1), Contains("have one noise level in this 'dit'"));
  NetworkConfig masked = tiny_wan();
  masked.in_channels = 8;
  CHECK_THAT(refused(masked, 1), Contains("have one noise level in this 'wan'"));
}

TEST_CASE("how networks take given frames") {
  NetworkConfig c = tiny_wan();
  CHECK(given_by(c) == GivenFramesBy::clean_time);
  c.in_channels = 2 * c.out_channels + 4;
  CHECK(given_by(c) == GivenFramesBy::mask_and_latent);
  CHECK(kWan.foreign->other(c).name.empty());
  c.in_channels = 2 * c.out_channels + 5;
  CHECK(given_by(c) == GivenFramesBy::none);
  CHECK_THAT(kWan.foreign->other(c).sign, Contains("'in_channels' 9, 'out_channels' 2"));
  CHECK(given_by(tiny_dit()) == GivenFramesBy::mark);
  NetworkConfig texts = tiny_dit();
  texts.in_channels = texts.out_channels;
  CHECK(given_by(texts) == GivenFramesBy::none);
}

TEST_CASE("wan: the embedded time is rounded as diffusers rounds it, in bf16 and if asked") {
  const NetworkConfig c = tiny_wan();
  NetworkBatch batch = wan_batch(c), rounding = batch;
  rounding.round_embedding = true;
  const auto exact = random_wan(c);
  CHECK(output_of(*exact, rounding) == output_of(*exact, batch));
  const auto network = random_wan(c, DType::bf16);
  CHECK(output_of(*network, rounding) != output_of(*network, batch));
  const std::string time = "condition_embedder.time_embedder.linear_2.",
                    projected = "condition_embedder.time_proj.";
  // The embedding alone, of which the head makes its modulation: 1 + 2^-10 is rounded to 1.
  fill(*network, time + "weight", 0);
  fill(*network, projected + "weight", 0);
  fill(*network, projected + "bias", 0.5f);
  fill(*network, time + "bias", 1);
  const std::vector<float> one = output_of(*network, batch);
  CHECK(output_of(*network, rounding) == one);
  fill(*network, time + "bias", 1 + 0x1p-10f);
  CHECK(output_of(*network, rounding) == one);
  CHECK(output_of(*network, batch) != one);
  // What blocks are modulated by.
  fill(*network, time + "bias", 1);
  fill(*network, projected + "bias", 0.5f + 0x1p-11f);
  CHECK(output_of(*network, rounding) == one);
  CHECK(output_of(*network, batch) != one);
  // SiLU of 1 is rounded before the product: 24 weights make 199.4 / 256 of it, and 199.6 / 256 of
  // what it is before.
  REQUIRE(c.width() == 24);
  fill(*network, projected + "bias", 199.0f / 256);
  const std::vector<float> product = output_of(*network, rounding);
  fill(*network, projected + "bias", 0);
  fill(*network, projected + "weight", 182 * 0x1p-12f);
  CHECK(output_of(*network, rounding) == product);
}

TEST_CASE("wan: the frame rate is of no matter, steps between positions are") {
  const NetworkConfig c = tiny_wan();
  const auto network = random_wan(c);
  NetworkBatch batch = wan_batch(c);
  const std::vector<float> before = output_of(*network, batch);
  batch.samples[0].fps = 30;
  CHECK(output_of(*network, batch) == before);
  batch.samples[0].position_step = {0.5, 1, 1};
  CHECK(output_of(*network, batch) != before);
}

TEST_CASE("wan: FP8 and 8 bits change the output a little, and the embeddings not") {
  const NetworkConfig c = middle_wan();
  const NetworkBatch batch = wan_batch(c);
  const auto tensor = [&](const DiffusionNetwork& network) {
    ops::Tape silent(false);
    return network.forward(silent, batch);
  };
  const auto network = random_wan(c, DType::bf16);
  for (nn::Parameter* p : network->parameters())
    if (p->shape().size() == 2) {
      const Tensor values = noise_tensor(p->shape(), random_key(p->name));
      for (float& v : values.floats())
        v /= std::sqrt(static_cast<float>(p->shape()[1]));
      p->write(values);
    }
  const Tensor without = tensor(*network);
  for (const Fp8Parts parts :
       {Fp8Parts{true, false}, Fp8Parts{false, true}, Fp8Parts{true, true}}) {
    network->set_inference_fp8(parts);
    const double error = output_change(without, tensor(*network));
    INFO(fp8_name(parts) << " " << error);
    CHECK(error > 1e-3);
    CHECK(error < 0.15);
    ops::Tape tape;
    CHECK_THROWS_WITH(network->forward(tape, batch), Contains("FP8 is for inference"));
  }
  network->set_inference_fp8({});
  CHECK(std::ranges::equal(tensor(*network).floats(), without.floats()));

  const auto in_8_bits = [&] {
    nn::NetworkLayout layout;
    layout.quantized = ops::RowFormat::int8;
    auto low = make_network(c, 1, DType::bf16, Device::cpu, false, layout);
    for (std::size_t i = 0; i < low->parameters().size(); ++i)
      low->parameters()[i]->write(network->parameters()[i]->read());
    low->quantize();
    return tensor(*low);
  };
  const double error = output_change(without, in_8_bits());
  INFO("8 bits " << error);
  CHECK(error > 1e-4);
  CHECK(error < 0.1);

  // All that is rounded are matrices of blocks.
  for (const nn::Parameter* p : network->parameters())
    if (p->name.ends_with("to_out.0.weight") || p->name.ends_with("ffn.net.2.weight"))
      fill(*network, p->name, 0);
  const Tensor apart = tensor(*network);
  CHECK(output_change(without, apart) > 0.1);
  CHECK(std::ranges::equal(in_8_bits().floats(), apart.floats()));
  network->set_inference_fp8({true, true});
  CHECK(std::ranges::equal(tensor(*network).floats(), apart.floats()));
}

TEST_CASE("wan: what FP8 cannot compute is told by the widths of its matrices") {
  NetworkConfig c = middle_wan();
  c.text_embed_dim = 6;  // is no width of a block
  CHECK_NOTHROW(check_fp8(c, DType::bf16, {.linear = true}));
  c.own<WanFields>().ffn_dim = 150;
  CHECK_THROWS_WITH(check_fp8(c, DType::bf16, {.linear = true}), Contains("150"));
}

TEST_CASE("wan: adapters go on the projections of both attentions") {
  const std::vector<NetworkMatrix> targets = lora_targets(tiny_wan(), {2, 0, {}});
  CHECK(targets.size() == 16);
  for (const NetworkMatrix& one : targets)
    CHECK(one.module.find(".attn") != std::string::npos);
  // Other matrices may have them, too.
  CHECK(lora_targets(tiny_wan(), {2, 0, {"time_proj", "ffn.net.2", "text_embedder.linear_1"}})
            .size() == 4);
}

TEST_CASE("wan: names of the authors' files and of ComfyUI's are known") {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"patch_embedding.weight", "patch_embed.proj.weight"},
      {"time_embedding.0.bias", "condition_embedder.time_embedder.linear_1.bias"},
      {"time_projection.1.weight", "condition_embedder.time_proj.weight"},
      {"text_embedding.2.weight", "condition_embedder.text_embedder.linear_2.weight"},
      {"blocks.11.modulation", "transformer_blocks.11.scale_shift_table"},
      {"blocks.11.self_attn.q.weight", "transformer_blocks.11.attn1.to_q.weight"},
      {"blocks.11.self_attn.norm_k.weight", "transformer_blocks.11.attn1.norm_k.weight"},
      {"blocks.11.cross_attn.o.bias", "transformer_blocks.11.attn2.to_out.0.bias"},
      {"blocks.11.norm3.bias", "transformer_blocks.11.norm2.bias"},
      {"blocks.11.ffn.0.weight", "transformer_blocks.11.ffn.net.0.proj.weight"},
      {"blocks.11.ffn.2.bias", "transformer_blocks.11.ffn.net.2.bias"},
      {"head.modulation", "scale_shift_table"},
      {"head.head.weight", "proj_out.weight"},
  };
  for (const std::string prefix : {"", "model.diffusion_model."}) {
    std::vector<std::string> there, here;
    for (const auto& [theirs, ours] : names) {
      there.push_back(prefix + theirs);
      here.push_back(ours);
    }
    CHECK(names_today("WanTransformer3DModel", Json::object(), there) == here);
  }
}

TEST_CASE("wan: adapters are known by the spellings of diffusers, the authors and kohya") {
  const auto module = [](const std::string& name) { return parse_adapter_name(name).module; };
  const std::string self = "transformer_blocks.13.attn1.to_q",
                    cross = "transformer_blocks.13.attn2.to_out.0",
                    mlp = "transformer_blocks.13.ffn.net.0.proj";
  CHECK(module("transformer.blocks.13.attn1.to_q.lora_A.weight") == self);
  CHECK(module("diffusion_model.blocks.13.self_attn.q.lora_down.weight") == self);
  CHECK(module("lora_unet_blocks_13_self_attn_q.lora_up.weight") == self);
  CHECK(module("diffusion_model.blocks.13.cross_attn.o.lora_B.weight") == cross);
  CHECK(module("lora_unet_blocks_13_cross_attn_o.lora_down.weight") == cross);
  CHECK(module("diffusion_model.blocks.13.ffn.0.lora_up.weight") == mlp);
  CHECK(module("lora_unet_blocks_13_ffn_0.lora_down.weight") == mlp);
}

TEST_CASE("wan: a network without a configuration is known by its sizes") {
  NetworkConfig c = default_config(kWan);
  c.num_attention_heads = 2;
  c.num_layers = 3;
  c.in_channels = 12, c.out_channels = 4;
  c.text_embed_dim = 10;
  c.own<WanFields>().ffn_dim = 20;
  c.own<WanFields>().freq_dim = 8;
  SizesOfNetwork sizes(c);
  const NetworkConfig found = kWan.foreign->published(sizes);
  CHECK(network_config_to_json(found) == network_config_to_json(c));
  sizes.shapes["patch_embed.proj.weight"][0] = 200;
  CHECK_THAT(usage_error([&] { kWan.foreign->published(sizes); }),
             Contains("a width of 200 is not made of heads of 128"));
}

TEST_CASE("wan: a configuration is that of diffusers, and others of the class are refused") {
  const Json json = network_config_to_json(tiny_wan());
  CHECK(json["_class_name"] == "WanTransformer3DModel");
  CHECK(json["ffn_dim"] == 20);
  CHECK(json["text_dim"] == 6);
  CHECK(json["freq_dim"] == 8);
  CHECK_FALSE(json.contains("mlp_ratio"));
  CHECK(network_config_to_json(network_config_from_json(json)) == json);
  const auto refused = [&](const char* field, Json value) {
    Json other = json;
    other[field] = std::move(value);
    return usage_error([&] { network_config_from_json(other); });
  };
  CHECK_THAT(refused("image_dim", 1280), Contains("is of Wan 2.1 I2V"));
  CHECK_THAT(refused("added_kv_proj_dim", 5120), Contains("is of Wan 2.1 I2V"));
  CHECK_THAT(refused("pos_embed_seq_len", 514), Contains("is of Wan 2.1 FLF2V"));
  CHECK_THAT(refused("cross_attn_norm", false), Contains("without a norm before cross-attention"));
  CHECK_THAT(refused("eps", 1e-5), Contains("another epsilon"));
  CHECK_THAT(refused("attention_head_dim", 14), Contains("a multiple of 4"));
  CHECK_THAT(refused("attention_head_dim", 8), Contains("at least 12"));
  CHECK_THAT(refused("freq_dim", 7), Contains("positive and even"));
  CHECK_THAT(refused("ffn_dim", 0), Contains("1 to 1048576"));
  CHECK_THAT(refused("patch_size", {2, 2, 2}), Contains("1 along time"));
}

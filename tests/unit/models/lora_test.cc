// Adapters of low rank: a file of diffusers and peft gives their output and gradients
// (scripts/golden/lora.py), every block has its own, and merged is separate.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "io/safetensors.h"
#include "models/dit/architecture.h"
#include "models/folder/lora_file.h"
#include "models/folder/lora_names.h"
#include "models/moviegen/moviegen.h"
#include "support/noise.h"
#include "support/small_networks.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::Architecture;
using models::DiffusionNetwork;
using models::kDit;
using models::kMovieGen;
using models::kStdit;
using models::LoraFile;
using models::LoraOptions;
using models::NetworkBatch;
using models::NetworkConfig;
using nn::AdapterShape;
using nn::Recompute;

namespace {

const std::string kFolder = std::string(VFM_GOLDEN) + "/dit_lora";

NetworkConfig of_type(const Architecture* type, int layers) {
  NetworkConfig c = type == &models::kWan ? tiny_wan() : tiny_dit();
  c.architecture = type;
  c.in_channels = 3;
  c.text_embed_dim = 10;
  c.num_layers = layers;
  if (type == &kMovieGen) c.own<models::MovieGenFields>().num_key_value_heads = 1;
  return c;
}

constexpr const Architecture* kTypes[] = {&kDit, &kStdit, &kMovieGen, &models::kWan};

std::vector<NetworkConfig> adaptable_networks() {
  std::vector<NetworkConfig> all;
  for (const Architecture* type : kTypes)
    all.push_back(of_type(type, 2));
  all.push_back(with_full_adaln(all[1]));
  all.push_back(all[2]);
  all.back().own<models::MovieGenFields>().qk_norm = true;
  return all;
}

NetworkBatch golden_batch(const Golden& golden) {
  NetworkBatch batch;
  batch.samples = {{3, 4, 8, 12.f, 0.31f, 4}, {1, 6, 4, 0.f, -0.47f, 1}};
  batch.latents = flat(golden.joined("input", ".latent", 2));
  batch.text = Tensor::from(golden.joined("input", ".text", 2), {5, 10});
  return batch;
}

std::unique_ptr<DiffusionNetwork> frozen(const NetworkConfig& c, DType compute = DType::f32) {
  auto network = models::make_network(c, 1, compute, Device::cpu, false);
  randomise(network->parameters());
  return network;
}

NetworkBatch drawn_batch() {
  NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 0.4f, 3}, {1, 8, 4, 0.f, -0.3f, 1}};
  batch.latents = noise_tensor({3 * 104}, 1);
  batch.text = noise_tensor({4, 10}, 2);
  return batch;
}

std::vector<float> drawn_cotangent() {
  return noise(2 * 104, 3);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("lora: output and gradients with an adapter of diffusers are those of peft") {
  const Golden golden("dit_lora"), base("dit_tiny");
  const LoraFile file(kFolder);
  const auto network = models::make_network(tiny_dit(), 1, DType::f32, Device::cpu, false);
  base.load_weights(network->parameters());
  network->attach(file.shapes(1), true);
  file.load(network->adapters());
  const NetworkBatch batch = golden_batch(golden);
  std::vector<float> first;
  for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                    Recompute::block_but_attention, Recompute::block}) {
    network->set_recompute(recompute);
    const auto output =
        step(*network, network->adapters(), batch, golden.joined("cotangent", "", 2));
    CHECK(distance(output, golden.joined("output", "", 2)) < 1e-5);
    for (const nn::Parameter* p : network->adapters()) {
      INFO(p->name);
      CHECK(distance(p->grad.floats(), golden["gradient." + p->name]) < 1e-4);
    }
    if (first.empty()) first = output;
    CHECK(output == first);
  }
}

TEST_CASE("lora: an architecture names any number of matrices that get adapters by default") {
  static constexpr std::string_view kTargets[] = {"to_q", "to_k", "to_v", "to_out.0", "net.2"};
  Architecture more = kDit;
  more.lora_targets = kTargets;
  NetworkConfig config = tiny_dit();
  const std::size_t usual = models::lora_targets(config, {}).size();
  config.architecture = &more;
  CHECK(models::lora_targets(config, {}).size() ==
        usual + static_cast<std::size_t>(config.num_layers));
  CHECK(models::lora_target_names(config, {.targets = {"to_q"}}) ==
        std::vector<std::string>{"to_q"});
}

TEST_CASE("lora: merged into the weights it gives the same, and the same bits on more threads") {
  const Golden golden("dit_lora");
  const Golden base("dit_tiny");
  const LoraFile file(kFolder);
  file.check(tiny_dit());
  const NetworkBatch batch = golden_batch(golden);
  std::vector<std::vector<float>> outputs;
  for (const int threads : {1, 3}) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    const auto network = models::make_network(tiny_dit(), 1, DType::f32, Device::cpu, false);
    base.load_weights(network->parameters());
    for (const nn::Parameter* p : network->parameters())
      file.merge(p->name, 1, p->value);
    outputs.push_back(output_of(*network, batch));
    omp_set_num_threads(before);
  }
  CHECK(distance(outputs[0], golden.joined("output", "", 2)) < 1e-5);
  CHECK(outputs[0] == outputs[1]);
}

TEST_CASE(
    "lora: two adapters, weighted, give what peft's set_adapters gives, merged and separate") {
  const Golden golden("dit_lora"), base("dit_tiny");
  const NetworkBatch batch = golden_batch(golden);
  for (const bool separate : {false, true}) {
    std::vector<models::CountedAdapters> both;
    both.push_back({LoraFile(kFolder), 0.75});
    both.push_back({LoraFile(kFolder + "/second"), -1.5});
    const auto network = models::make_network(tiny_dit(), 1, DType::f32, Device::cpu, false);
    base.load_weights(network->parameters());
    models::adapt(*network, both, separate);
    CHECK(distance(output_of(*network, batch), golden.joined("together", "", 2)) < 1e-5);
    CHECK(network->adapters().empty() != separate);
  }
}

TEST_CASE("lora: merged in bf16 several are rounded once") {
  // The weights with `parts` equal parts of an adapter, in so many calls.
  const auto merged = [](int parts, int calls) {
    const auto network = models::make_network(tiny_dit(), 1, DType::bf16, Device::cpu, false);
    Golden("dit_tiny").load_weights(network->parameters());
    for (int call = 0; call < calls; ++call) {
      std::vector<models::CountedAdapters> same;
      for (int i = 0; i < parts / calls; ++i)
        same.push_back({LoraFile(kFolder), 1.0 / parts});
      models::adapt(*network, same, false);
    }
    std::vector<float> values;
    for (const nn::Parameter* p : network->parameters()) {
      const Tensor value = p->read();
      values.insert(values.end(), value.floats().begin(), value.floats().end());
    }
    return values;
  };
  const std::vector<float> whole = merged(1, 1);
  const auto others = [&](const std::vector<float>& values) {
    std::size_t count = 0;  // by more than the rounding of f32
    for (std::size_t i = 0; i < whole.size(); ++i)
      count += std::abs(values[i] - whole[i]) > 1e-3f * std::abs(whole[i]) ? 1 : 0;
    return count;
  };
  CHECK(others(merged(4, 1)) < whole.size() / 1000);
  CHECK(others(merged(4, 4)) > whole.size() / 20);
}

TEST_CASE("lora fault: adapters on 27 of 28 blocks; here every block has all of its own") {
  const NetworkBatch batch = drawn_batch();
  for (const Architecture* type : kTypes)
    for (int layers = 1; layers <= 3; ++layers) {
      INFO(type->name << ", " << layers << " layers");
      const NetworkConfig c = of_type(type, layers);
      const auto network = frozen(c);
      const std::size_t attentions = type == &kStdit ? 4 : 2;
      network->attach(models::lora_shapes(c, {2, 0, {}}), true);
      CHECK(network->adapters().size() == 2 * 4 * attentions * static_cast<std::size_t>(layers));
      // B is zero and A is not, so a gradient reaches each B; then each has an effect.
      step(*network, network->adapters(), batch, drawn_cotangent());
      std::map<std::string, int> of_block;
      for (const nn::Parameter* p : network->adapters()) {
        INFO(p->name);
        const bool reached = std::ranges::any_of(p->grad.floats(), [](float g) { return g != 0; });
        CHECK(reached == p->name.ends_with("lora_B.weight"));
        ++of_block[p->name.substr(0, p->name.find('.', p->name.find('.') + 1))];
      }
      CHECK(of_block.size() == static_cast<std::size_t>(layers));
      for (const auto& [block, count] : of_block)
        CHECK(count == static_cast<int>(8 * attentions));
    }
}

TEST_CASE("lora: new adapters change nothing, and only they are trained") {
  for (const Architecture* type : kTypes) {
    const NetworkConfig c = of_type(type, 2);
    const auto network = frozen(c);
    const std::vector<float> before = output_of(*network, drawn_batch());
    CHECK(network->adapters().empty());
    network->attach(models::lora_shapes(c, {3, 6, {}}), true);
    CHECK(output_of(*network, drawn_batch()) == before);
    for (const nn::Parameter* p : network->parameters())
      CHECK(!p->grad.defined());
    std::int64_t count = 0;
    for (const nn::Parameter* p : network->adapters()) {
      CHECK(p->grad.defined());
      count += p->elements();
    }
    std::int64_t expected = 0;
    for (const models::NetworkMatrix& m : models::lora_targets(c, {3, 6, {}}))
      expected += 3 * (m.rows + m.columns);
    CHECK(count == expected);
  }
}

TEST_CASE("lora: A begins as PyTorch draws a linear layer, B as zero, by name and seed") {
  const NetworkConfig c = tiny_dit();
  const auto one = frozen(c), other = frozen(c);
  one->attach(models::lora_shapes(c, {4, 0, {"to_q"}}), true);
  other->attach(models::lora_shapes(c, {4, 0, {"attn2.to_q", "ff.net.2"}}), true);
  std::map<std::string, const nn::Parameter*> seen;
  for (const nn::Parameter* p : one->adapters()) {
    seen[p->name] = p;
    const double bound = p->name.ends_with("A.weight") ? 1 / std::sqrt(24.) : 0;
    double largest = 0;
    for (const float v : p->value.floats())
      largest = std::max(largest, std::abs(double{v}));
    CHECK(largest <= bound);
    CHECK(largest >= 0.9 * bound);
  }
  int common = 0;
  for (const nn::Parameter* p : other->adapters())
    if (const auto found = seen.find(p->name); found != seen.end()) {
      ++common;
      CHECK(distance(p->value.floats(), found->second->value.floats()) == 0);
    }
  CHECK(common == 4);
}

TEST_CASE("lora: what is computed again changes no bit, in f32 and bf16, of any network") {
  for (const NetworkConfig& c : adaptable_networks())
    for (const DType compute : {DType::f32, DType::bf16}) {
      const auto network = frozen(c, compute);
      std::vector<std::string> targets;  // all matrices
      for (const models::NetworkMatrix& m : models::network_matrices(c))
        targets.push_back(m.module);
      network->attach(models::lora_shapes(c, {2, 1, targets}), true);
      randomise(network->adapters());
      std::vector<std::vector<float>> outputs;
      std::vector<std::vector<float>> gradients;
      for (const auto& [r, offload] : {std::pair{Recompute::none, false},
                                       {Recompute::elementwise, false},
                                       {Recompute::block_but_attention, false},
                                       {Recompute::block_but_attention, true},
                                       {Recompute::block, false},
                                       {Recompute::block, true}}) {
        network->set_recompute(r, offload);
        outputs.push_back(step(*network, network->adapters(), drawn_batch(), drawn_cotangent()));
        std::vector<float>& all = gradients.emplace_back();
        for (const nn::Parameter* p : network->adapters())
          all.insert(all.end(), p->grad.floats().begin(), p->grad.floats().end());
        CHECK(outputs.back() == outputs.front());
        CHECK(gradients.back() == gradients.front());
      }
    }
}

TEST_CASE("lora: the list of matrices is that of the networks") {
  for (const NetworkConfig& c : adaptable_networks()) {
    const auto network = models::make_network(c, 1);
    std::map<std::string, Shape> built, listed;
    for (const nn::Parameter* p : network->parameters())
      if (p->shape().size() == 2 && p->name.ends_with(".weight"))
        built[p->name.substr(0, p->name.size() - 7)] = p->shape();
    for (const models::NetworkMatrix& m : models::network_matrices(c))
      listed[m.module] = {m.rows, m.columns};
    CHECK(built == listed);
  }
}

TEST_CASE("lora: a target is a matrix or its last words") {
  CHECK(models::names_module("to_q", "transformer_blocks.0.attn1.to_q"));
  CHECK(models::names_module("attn1.to_q", "transformer_blocks.0.attn1.to_q"));
  CHECK(models::names_module("proj_out", "proj_out"));
  CHECK(!models::names_module("q", "transformer_blocks.0.attn1.to_q"));
  CHECK(!models::names_module("", "proj_out"));
  const std::string message = usage_error([] {
    models::lora_shapes(tiny_dit(), {2, 0, {"to_x"}});
  });
  CHECK(has(message, "'to_x'; there are "));
  CHECK(has(message, "to_out.0"));
  CHECK(models::lora_targets(tiny_dit(), {2, 0, {"attn2.to_k"}}).size() == 2);
  const auto network = frozen(tiny_dit());
  CHECK(has(usage_error([&] {
              network->attach({{"transformer_blocks.0.attn1.norm_q", 1, 1}}, true);
            }),
            "is not a matrix"));
  CHECK(has(usage_error([&] { network->attach({{"blocks.0", 1, 1}}, true); }), "has no matrix"));
}

TEST_CASE("lora: products in FP8 refuse separate adapters") {
  NetworkConfig c = tiny_dit();
  c.attention_head_dim = 16;
  c.text_embed_dim = 16;
  const auto network = frozen(c);
  network->attach(models::lora_shapes(c, {2, 0, {}}), false);
  CHECK(has(usage_error([&] { network->set_inference_fp8({.linear = true}); }), "merge them"));
}

TEST_CASE("lora: scales of peft's settings") {
  const std::map<std::string, std::int64_t> ranks = {{"a.to_q", 4}, {"b.to_q", 2}, {"b.to_k", 2}};
  const auto scales = [&](const Json& settings) {
    return models::lora_scales(settings, ranks, "'f'");
  };
  CHECK(scales(Json::object()).at("a.to_q") == 1);
  CHECK(scales({{"lora_alpha", 8}}).at("a.to_q") == 2);
  CHECK(scales({{"lora_alpha", 8}, {"use_rslora", true}}).at("a.to_q") == 4);
  const auto some = scales({{"lora_alpha", 2}, {"alpha_pattern", {{"to_q", 8}, {"^b.to_q", 4}}}});
  CHECK(some.at("a.to_q") == 2);
  CHECK(some.at("b.to_q") == 4);  // the first that matches, as peft's get_pattern_key has it
  const auto other = scales({{"lora_alpha", 2}, {"alpha_pattern", {{"^b.to_q", 4}, {"to_q", 8}}}});
  CHECK(other.at("a.to_q") == 2);
  CHECK(other.at("b.to_q") == 2);
  CHECK(some.at("b.to_k") == 1);
  CHECK(has(usage_error([&] { scales({{"use_dora", true}}); }), "'use_dora' true"));
  CHECK(has(usage_error([&] { scales({{"bias", "all"}}); }), "'bias'"));
  CHECK(has(usage_error([&] { scales({{"peft_type", "LOKR"}}); }), "LOKR"));
  CHECK_NOTHROW(scales({{"init_lora_weights", true}}));
  CHECK_NOTHROW(scales({{"init_lora_weights", "gaussian"}}));
  CHECK(has(usage_error([&] { scales({{"init_lora_weights", "pissa"}}); }), "\"pissa\""));
  CHECK(has(usage_error([&] { scales({{"alpha_pattern", {{".*q", 1}}}}); }), "'.*q'"));
}

TEST_CASE("lora: an adapter of another model is refused, with what does not fit") {
  NetworkConfig c = tiny_dit();
  c.num_layers = 1;
  const LoraFile file(kFolder + "/pytorch_lora_weights.safetensors");
  CHECK(has(usage_error([&] { file.check(c); }), "unexpected"));
  c = tiny_dit();
  c.mlp_ratio = 2;
  CHECK(has(usage_error([&] { file.check(c); }), "of another shape"));
  CHECK(has(usage_error([] { LoraFile("nowhere"); }), "no such adapter: 'nowhere'"));
  CHECK(has(usage_error([] { LoraFile(std::string(VFM_GOLDEN)); }), "holds no adapter"));
  CHECK(has(usage_error([] { LoraFile(std::string(VFM_GOLDEN) + "/dit_tiny.safetensors"); }),
            "there are MODULE.lora_A.weight"));
}

TEST_CASE("lora: of two networks each has its own adapters of a file, or all of them") {
  const TemporaryFolder folder;
  const std::string matrix = "transformer_blocks.0.attn1.to_q";
  const std::int64_t width = tiny_dit().width();
  // Values 1, 2, 3 and 4 of the tensors, in the order of `prefixes` and A before B.
  const auto write = [&](const std::string& name, const std::vector<std::string>& prefixes) {
    std::vector<std::vector<float>> values;
    std::vector<io::TensorView> views;
    for (std::size_t i = 0; i < 2 * prefixes.size(); ++i)
      values.emplace_back(static_cast<std::size_t>(width), static_cast<float>(i + 1));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Shape shape = i % 2 == 0 ? Shape{1, width} : Shape{width, 1};
      views.push_back({prefixes[i / 2] + matrix + (i % 2 == 0 ? ".lora_A" : ".lora_B") + ".weight",
                       "F32", shape, std::as_bytes(std::span(values[i]))});
    }
    const Json settings = {{"transformer.lora_alpha", 2}, {"transformer_2.lora_alpha", 3}};
    io::write_safetensors(folder.path, name, std::move(views), ~std::uint64_t{0}, {},
                          {{"lora_adapter_metadata", dump_json(settings)}});
    return folder / (name + ".safetensors");
  };
  /// What the adapters of a network add to each number of the matrix.
  const auto adds = [&](const std::string& file, std::optional<int> number) {
    const LoraFile adapters(file, number);
    adapters.check(tiny_dit());
    const Tensor sum = Tensor::zeros({width, width});
    adapters.merge(matrix + ".weight", 1, sum);
    return sum.floats()[0];
  };
  const std::string apart = write("apart", {"transformer.", "transformer_2."});
  CHECK(adds(apart, 0) == 2 * 1 * 2);
  CHECK(adds(apart, 1) == 3 * 3 * 4);
  CHECK(LoraFile(apart, 0).hash() == LoraFile(apart, 1).hash());
  CHECK(has(usage_error([&] { LoraFile(apart).check(tiny_dit()); }), "transformer_2."));
  // For the second network only: the first has none.
  const std::string second = write("second", {"transformer_2."});
  CHECK(LoraFile(second, 0).empty());
  CHECK_FALSE(LoraFile(second, 1).empty());
  CHECK(adds(second, 1) == 3 * 1 * 2);
  CHECK(LoraFile(second, 0).hash() != LoraFile(apart, 0).hash());
  // Without that prefix for both.
  const std::string both = write("both", {"transformer."});
  CHECK((adds(both, 0) == 2 * 1 * 2 && adds(both, 1) == 2 * 1 * 2 && adds(both, {}) == 2 * 1 * 2));
  CHECK(LoraFile(both, 1).hash() == LoraFile(both).hash());
}

TEST_CASE("lora: adapters as a pickle of peft, and under kohya's names, are those of diffusers") {
  const LoraFile file(kFolder + "/second");
  const std::string forms = std::string(VFM_GOLDEN) + "/forms/";
  for (const std::string& form :
       {forms + "peft", forms + "peft/adapter_model.bin", forms + "kohya.safetensors"})
    CHECK(LoraFile(form).hash() == file.hash());
}

TEST_CASE("lora: the names that adapters had in the course of time") {
  using models::AdapterPart;
  const auto is = [](std::string_view name, std::string_view module, AdapterPart part) {
    const models::AdapterName parsed = models::parse_adapter_name(name);
    return parsed.module == module && parsed.part == part;
  };
  const std::string to_q = "transformer_blocks.3.attn1.to_q";
  for (const char* prefix : {"", "transformer.", "base_model.model.", "diffusion_model."}) {
    CHECK(is(prefix + to_q + ".lora_A.weight", to_q, AdapterPart::a));
    CHECK(is(prefix + to_q + ".lora_B.default.weight", to_q, AdapterPart::b));
    CHECK(is(prefix + to_q + ".lora_down.weight", to_q, AdapterPart::a));
    CHECK(is(prefix + to_q + ".lora_up.weight", to_q, AdapterPart::b));
    CHECK(is(prefix + to_q + ".lora.up.weight", to_q, AdapterPart::b));
    CHECK(is(prefix + to_q + ".alpha", to_q, AdapterPart::alpha));
  }
  CHECK(is("transformer_blocks.3.attn1.processor.to_q_lora.down.weight", to_q, AdapterPart::a));
  CHECK(is("transformer_blocks.0.attn2.processor.to_out_lora.up.weight",
           "transformer_blocks.0.attn2.to_out.0", AdapterPart::b));
  CHECK(is("lora_transformer_transformer_blocks_12_ff_net_0_proj.lora_up.weight",
           "transformer_blocks.12.ff.net.0.proj", AdapterPart::b));
  CHECK(is("lora_unet_proj_out.alpha", "proj_out", AdapterPart::alpha));
  CHECK(is("lora_unet_transformer_blocks_1_attn1_to_out_0.lora_down.weight",
           "transformer_blocks.1.attn1.to_out.0", AdapterPart::a));
  CHECK(is("lora_transformer_nothing_known.alpha", "lora_transformer_nothing_known",
           AdapterPart::alpha));
  CHECK(is("a.weight", "a.weight", AdapterPart::other));
}

// What is told of a model on Device::meta, against the model itself: memory against what the
// allocator hands out, and operations against PyTorch's.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <string>

#include "base/error.h"
#include "base/one_thread.h"
#include "models/decoder/decoder.h"
#include "models/dit/architecture.h"
#include "models/dit/lora.h"
#include "models/dit/network_cost.h"
#include "models/moviegen/moviegen.h"
#include "support/small_networks.h"
#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/meta.h"

using namespace vfm;
using models::Architecture;
using models::CausalDecoder;
using models::kDit;
using models::kMovieGen;
using models::kStdit;
using models::NetworkBatch;
using models::NetworkConfig;
using nn::Recompute;

namespace {

constexpr std::array kRecomputes{Recompute::block, Recompute::block_but_attention,
                                 Recompute::elementwise, Recompute::none};

NetworkBatch batch_of(const NetworkConfig& c, std::vector<models::NetworkSample> samples,
                      Device device) {
  NetworkBatch batch;
  std::int64_t places = 0, texts = 0;
  for (const models::NetworkSample& s : samples) {
    places += std::int64_t{s.frames} * s.height * s.width;
    texts += s.text_tokens;
  }
  batch.samples = std::move(samples);
  batch.latents = Tensor::zeros({places * c.in_channels}, DType::f32, device);
  batch.text = Tensor::zeros({texts, c.text_embed_dim}, DType::f32, device);
  return batch;
}

models::CodeBatch codes_of(const models::DecoderConfig& c, Device device) {
  models::CodeBatch batch;
  batch.samples = {{4, 8, 8, 2}};
  batch.codes.assign(256, 5);
  if (c.text_embed_dim > 0) batch.text = Tensor::zeros({2, c.text_embed_dim}, DType::f32, device);
  return batch;
}

/// Bytes that `work` takes at most beyond what is there.
template <class Work>
double taken(Work work) {
  reset_memory_peak();
  const double before = static_cast<double>(cpu_memory().current);
  work();
  return static_cast<double>(cpu_memory().peak) - before;
}

template <class Work>
double told(Work work) {
  const MetaAccount account(Device::cpu);
  work();
  return static_cast<double>(account.memory().peak);
}

NetworkConfig middling(const Architecture* type) {
  NetworkConfig c = tiny_dit();
  c.architecture = type;
  if (type == &models::kWan) c.own<models::WanFields>() = {.ffn_dim = 512, .freq_dim = 64};
  c.num_attention_heads = 4, c.attention_head_dim = 32, c.num_layers = 3;
  c.max_size = {8, 16, 16};
  return c;
}

}  // namespace

TEST_CASE("networks: the memory that is told of a step is what the allocator hands out", "[long]") {
  const OneThread one_thread;
  for (const Architecture* type : {&kDit, &kStdit, &kMovieGen, &models::kWan})
    for (const DType compute : {DType::f32, DType::bf16}) {
      const NetworkConfig c = middling(type);
      const std::vector<models::NetworkSample> samples = {{4, 16, 16, 24.f, 0.2f, 2},
                                                          {1, 8, 12, 0.f, 0.1f, 9}};
      const auto network = models::make_network(c, 1, compute);
      const auto shape = models::make_network(c, 1, compute, Device::meta);
      const NetworkBatch batch = batch_of(c, samples, Device::cpu);
      const NetworkBatch blank = batch_of(c, samples, Device::meta);
      step_of(*network, batch);  // what is made once
      for (const Recompute recompute : kRecomputes) {
        network->set_recompute(recompute);
        shape->set_recompute(recompute);
        const double real = taken([&] { step_of(*network, batch); });
        const double guess = told([&] { step_of(*shape, blank); });
        INFO(type->name << " " << nn::recompute_name(recompute) << " " << dtype_name(compute)
                        << ": " << guess << " of " << real);
        CHECK(guess == Approx(real).epsilon(0.03));
      }
      ops::Tape silent(false);
      const double real = taken([&] { network->forward(silent, batch); });
      const double guess = told([&] { shape->forward(silent, blank); });
      INFO(type->name << " forward: " << guess << " of " << real);
      CHECK(guess == Approx(real).epsilon(0.03));
    }
}

TEST_CASE("networks with adapters beside the weights: what generating with them costs") {
  const OneThread one_thread;
  const NetworkConfig c = middling(&kDit);
  const std::vector<models::NetworkSample> samples = {{4, 16, 16, 24.f, 0.2f, 9}};
  const auto set = [&](int rank) { return models::lora_shapes(c, {rank, 0, {}}); };
  const auto network = models::make_network(c, 1, DType::bf16, Device::cpu, false);
  const double before = static_cast<double>(cpu_memory().current);
  network->attach(set(8), false);
  network->attach(set(5), false);
  const double added = static_cast<double>(cpu_memory().current) - before;
  const auto cost = [&](const std::vector<std::vector<nn::AdapterShape>>& sets) {
    return models::forward_cost(c, sets, samples, DType::bf16, {}, Device::cpu);
  };
  const models::PartCost without = cost({}), with = cost({set(8), set(5)});
  CHECK(with.weight_bytes - without.weight_bytes == added);
  // By hand: in each of three blocks six matrices [128, 128], of 256 tokens each, and those for
  // keys and values of 9 tokens of text.
  const double text = c.text_embed_dim;
  CHECK(static_cast<double>(with.parameters - without.parameters) ==
        13 * 3 * (6 * 256 + 2 * (128 + text)));
  CHECK(with.flops - without.flops == 2 * 13 * 3 * (6 * 256 * 256 + 2 * (128 + text) * 9));

  const NetworkBatch batch = batch_of(c, samples, Device::cpu);
  ops::Tape silent(false);
  network->forward(silent, batch);                                              // what is made once
  network->forward(silent, batch_of(c, {{1, 2, 2, 24.f, 0, 1}}, Device::cpu));  // of another clip
  CHECK(with.activation_bytes ==
        Approx(taken([&] { network->forward(silent, batch); })).epsilon(0.03));
}

TEST_CASE("decoder: the memory that is told of a step is what the allocator hands out", "[long]") {
  const OneThread one_thread;
  models::DecoderConfig c;
  c.vocabulary = 3000;
  c.num_attention_heads = 4, c.num_key_value_heads = 2, c.attention_head_dim = 32;
  c.num_layers = 3, c.mlp_ratio = 3;
  for (const int text_width : {0, 16})
    for (const DType compute : {DType::f32, DType::bf16}) {
      c.text_embed_dim = text_width;
      CausalDecoder decoder(c, 1, compute), shape(c, 1, compute, Device::meta);
      const models::CodeBatch batch = codes_of(c, Device::cpu), blank = codes_of(c, Device::meta);
      step_of(decoder, batch);  // what is made once
      double before = 0;
      for (const Recompute recompute : kRecomputes) {
        decoder.set_recompute(recompute);
        shape.set_recompute(recompute);
        const double real = taken([&] { step_of(decoder, batch); });
        const double guess = told([&] { step_of(shape, blank); });
        INFO(nn::recompute_name(recompute) << " " << dtype_name(compute) << ", text " << text_width
                                           << ": " << guess << " of " << real);
        CHECK(guess == Approx(real).epsilon(0.03));
        // The next one saves something, and attention's results are little of a tiny model.
        CHECK(real > (recompute == Recompute::block_but_attention ? 1.01 : 1.1) * before);
        before = real;
      }
    }
}

TEST_CASE("Cosmos 7B on meta: parameters, operations, and no time") {
  const auto begin = std::chrono::steady_clock::now();
  const MetaAccount account(Device::cuda);
  const NetworkConfig c;
  const auto network = models::make_network(c, 1, DType::bf16, Device::meta);
  std::int64_t parameters = 0;
  for (const nn::Parameter* p : network->parameters())
    parameters += p->elements();
  CHECK(parameters == 7236192256);
  // Weights, of two bytes and two, and gradients; blocks are hardly larger.
  const double weights = static_cast<double>(account.memory().current);
  CHECK(weights == Approx(8.0 * static_cast<double>(parameters)).epsilon(0.01));
  const auto flops_per_token = [&](int frames, int height, int width, Recompute recompute) {
    network->set_recompute(recompute);
    const double before = account.work().flops;
    step_of(*network, batch_of(c, {{frames, height, width, 24.f, 0, 512}}, Device::meta));
    return (account.work().flops - before) / (frames * height * width / 4.0);
  };
  CHECK(flops_per_token(16, 64, 40, Recompute::none) == Approx(54.3e9).epsilon(0.01));
  CHECK(flops_per_token(16, 88, 160, Recompute::elementwise) == Approx(117.7e9).epsilon(0.01));
  const double kept = static_cast<double>(account.memory().peak) - weights;
  flops_per_token(32, 96, 96, Recompute::block);
  CHECK(static_cast<double>(account.memory().peak) - weights ==
        kept);  // of fewer, all layers' rows
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
}

TEST_CASE("a layer of Cosmos 7B: the bytes of its elementwise kernels, by name") {
  // One layer is what a network of three has more than one of two. One token of text: all but
  // nothing, and the samples' own vectors are as little.
  constexpr int kRows = 64, kColumns = 512;
  constexpr double kTokens = kRows * kColumns / 4.0, kWidth = 4096;
  const auto kernels_of = [&](int layers) {
    NetworkConfig c;
    c.num_layers = layers;
    c.max_size = {4, 512, 512};
    const auto network = models::make_network(c, 1, DType::bf16, Device::meta);
    network->set_recompute(Recompute::elementwise);
    const NetworkBatch batch = batch_of(c, {{1, kRows, kColumns, 24.f, 0, 1}}, Device::meta);
    const MetaAccount account(Device::cuda);
    step_of(*network, batch);
    return account.kernels();
  };
  const std::map<std::string, KernelWork> fewer = kernels_of(2);
  std::map<std::string, double> bytes;  // per token and width
  double elementwise = 0;
  for (const auto& [name, kernel] : kernels_of(3)) {
    bytes[name] = (kernel.bytes - fewer.at(name).bytes) / kTokens / kWidth;
    if (kernel.kind == WorkKind::elementwise) elementwise += bytes[name];
  }
  // By hand, in the order of the operands; what is one number a token or a vector a sample is less
  // than the margin.
  const std::map<std::string, double> expected = {
      // x, branch, stream, normed, at first positions too; once more in backward: x, normed
      {"modulate_forward", 3 * (4 + 2 + 4 + 2) + 4 + 3 * (4 + 2)},
      // stream, dnormed, dstream, branch; dbranch, dx; for 64 tokens three sums; at first the
      // positions' gradient, to those of the layers above
      {"modulate_backward", 3 * (4 + 2 + 4 + 2 + 2 + 4 + 3 * 4 / 64.) + 4 + 4},
      {"modulate_reduce", 3 * 3 * 4 / 64.},
      // Queries and keys; queries of the text. Backward: x, dy and dx.
      {"qk_norm_rope_forward", 2 * (2 + 2) + (2 + 2)},
      {"qk_norm_rope_gradients", 2 * (2 + 2 + 2) + (2 + 2 + 2)},
      // Four times as wide. Backward: x, dy, dx, and the result once more.
      {"activation_forward", 4 * (2 + 2)},
      {"activation_backward", 4 * (2 + 2 + 2 + 2)},
  };
  double sum = 0;
  for (const auto& [name, by_hand] : expected) {
    INFO(name);
    CHECK(bytes[name] == Approx(by_hand).margin(0.15));
    sum += by_hand;
  }
  CHECK(sum == Approx(198 + 9 * 4 / 64. + 9 * 4 / 64.));
  CHECK(elementwise == Approx(sum).epsilon(0.005));
}

TEST_CASE("a layer of Cosmos 7B in FP8: the bytes of its elementwise kernels, by name") {
  constexpr double kTokens = 8192, kWidth = 4096;
  const auto kernels_of = [&](int layers) {
    NetworkConfig c;
    c.num_layers = layers;
    c.max_size = {4, 512, 512};
    const models::NetworkSample sample{1, 64, 512, 24.f, 0, 1};
    return work_by_name(
        models::forward_cost(c, {}, {sample}, DType::bf16, {.linear = true}, Device::cuda).calls);
  };
  const std::map<std::string, KernelWork> fewer = kernels_of(2);
  std::map<std::string, double> bytes;  // per token and width
  for (const auto& [name, kernel] : kernels_of(3))
    if (kernel.kind == WorkKind::elementwise && name != "add_columns")
      bytes[name] = (kernel.bytes - fewer.at(name).bytes) / kTokens / kWidth;
  // What is one number a token is less than the margin.
  // Neither modulate_forward nor activation_forward: E4M3 comes from modulate and gelu themselves,
  // and from attention's results, of which a kernel of its own makes it.
  const std::map<std::string, double> expected = {
      // x, branch, stream, at first positions too; then stream and values
      {"modulate_fp8", 3 * (4 + 2 + 4 + 4 + 1) + 4},
      // Four times as wide: twice x, and the values
      {"quantize_gelu", 4 * (2 + 2 + 1)},
      {"quantize", 2 * (2 + 2 + 1)},
      {"qk_norm_rope_forward", 2 * (2 + 2) + (2 + 2)},
  };
  for (const auto& [name, moved] : bytes) {
    INFO(name);
    const auto found = expected.find(name);
    CHECK(moved == Approx(found == expected.end() ? 0 : found->second).margin(0.15));
  }
  for (const auto& [name, by_hand] : expected)
    CHECK(bytes.count(name) == 1);
}

TEST_CASE("a tensor on meta has no values") {
  const Tensor tensor({2, 3}, DType::f32, Device::meta);
  CHECK_THROWS_AS(tensor.to(Device::cpu), Error);
  CHECK_THROWS_AS(tensor.floats(), Error);
  CHECK_THROWS_AS(copy(tensor, Tensor({2, 3})), Error);
  CHECK(tensor.clone().device() == Device::meta);
  // It may outlive the account that counted it.
  Tensor left;
  {
    const MetaAccount account(Device::cpu);
    left = Tensor({100}, DType::f32, Device::meta);
    CHECK(account.memory().current == block_size(400));
    {
      const MetaAccount inner(Device::cuda);
      const Tensor other({1}, DType::f32, Device::meta);
      CHECK(inner.memory().current == gpu_block_size(4));
    }
    CHECK(account.memory().peak == block_size(400));
  }
}

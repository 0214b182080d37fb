// What is told of a GPU's memory by a run on Device::meta, against what its allocator hands out:
// steps of every network, and of a video tokenizer, as the emulation runs them.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "models/cosmos/autoencoder.h"
#include "models/decoder/decoder.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/dit/network.h"
#include "models/moviegen/moviegen.h"
#include "ops/determinism.h"
#include "ops/matmul/matmul_kernels.h"
#include "support/small_networks.h"
#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/meta.h"

using namespace vfm;
using models::Architecture;
using models::kDit;
using models::kMovieGen;
using models::kStdit;
using nn::Recompute;

namespace {

/// Checks the memory of work(Device), and gives what it takes.
template <class Work>
double check(const std::string& what, Work work) {
  ops::set_deterministic(true);  // no product is timed
  work(Device::cuda);            // what is made once
  reset_cuda_peak();
  pinned_allocator().reset_peak();
  const double before = static_cast<double>(cuda_memory().current);
  work(Device::cuda);
  const double taken = static_cast<double>(cuda_memory().peak) - before;
  const MetaAccount account(Device::cuda);
  work(Device::meta);
  // The emulation's products are the CPU's, which need no workspace.
  const double told = static_cast<double>(account.memory().peak - ops::kGemmWorkspace);
  INFO(what << ": " << told << " of " << taken);
  CHECK(told == Approx(taken).epsilon(0.03));
  CHECK(account.pinned().peak == (account.copies().empty() ? 0 : pinned_allocator().stats().peak));
  return taken;
}

models::NetworkConfig small(const Architecture* type) {
  models::NetworkConfig c;
  c.architecture = type;
  c.in_channels = c.out_channels = 4;
  c.num_attention_heads = 2, c.attention_head_dim = 64, c.num_layers = 2;
  c.text_embed_dim = 24, c.own<models::DitFields>().adaln_lora_dim = 16;
  c.max_size = {4, 16, 16};
  return c;
}

models::NetworkBatch batch_of(const models::NetworkConfig& c, Device device) {
  models::NetworkBatch batch;
  batch.samples = {{2, 8, 8, 24.f, 0.2f, 12}, {1, 4, 6, 0.f, 0.1f, 9}};
  batch.latents = Tensor::zeros({(2 * 8 * 8 + 4 * 6) * c.in_channels}, DType::f32, device);
  batch.text = Tensor::zeros({21, c.text_embed_dim}, DType::f32, device);
  return batch;
}

}  // namespace

TEST_CASE("networks: the memory of a step on a GPU") {
  // All there is of a step in one of the types, for the emulation is slow.
  const auto [type, compute, recompute] = GENERATE(table<const Architecture*, DType, Recompute>({
      {&kDit, DType::bf16, Recompute::none},
      {&kDit, DType::bf16, Recompute::elementwise},
      {&kDit, DType::f32, Recompute::block},
      {&kStdit, DType::bf16, Recompute::none},
      {&kMovieGen, DType::bf16, Recompute::elementwise},
  }));
  const models::NetworkConfig c = small(type);
  const auto step = [&, how = recompute, dtype = compute](Device device) {
    const auto network = models::make_network(c, 1, dtype, device);
    network->set_recompute(how);
    step_of(*network, batch_of(c, device));
  };
  check(std::string(type->name) + " " + std::string(nn::recompute_name(recompute)), step);
}

TEST_CASE("networks: the memory of a pass in FP8 on a GPU") {
  for (const Architecture* type : {&kDit, &kStdit}) {
    models::NetworkConfig c = small(type);
    c.text_embed_dim = 32;
    check(std::string(type->name) + " in FP8", [&](Device device) {
      const auto network = models::make_network(c, 1, DType::bf16, device);
      network->set_inference_fp8({.linear = true});
      ops::Tape silent(false);
      network->forward(silent, batch_of(c, device));
    });
  }
}

TEST_CASE("networks: matrices in 8 bits wait on the host, and are never whole on a GPU") {
  models::NetworkConfig c = small(&kDit);
  c.num_layers = 4;
  std::vector<double> taken;
  for (const std::optional<ops::RowFormat> format :
       {std::optional<ops::RowFormat>(), std::optional(ops::RowFormat::int8)})
    taken.push_back(check("8 bits", [&](Device device) {
      nn::NetworkLayout layout;
      layout.quantized = format;
      const auto network = models::make_network(c, 1, DType::bf16, device, false, layout);
      if (format) network->quantize();
      ops::Tape silent(false);
      network->forward(silent, batch_of(c, device));
    }));
  const double d = c.width(), text = c.text_embed_dim;
  const double matrices = c.num_layers * (14 * d * d + 2 * d * text);
  // Half of bf16's, but for the one that is whole.
  CHECK(taken[0] - taken[1] > 0.8 * matrices);
  CHECK(taken[0] - taken[1] < matrices);
}

TEST_CASE("what goes into blocks waits in the host's memory: that of a GPU is told, and free") {
  const auto [type, recompute] = GENERATE(table<const Architecture*, Recompute>(
      {{&kDit, Recompute::block}, {&kMovieGen, Recompute::block_but_attention}}));
  models::NetworkConfig c = small(type);
  c.attention_head_dim = 32, c.num_layers = 6, c.mlp_ratio = 1;  // blocks that take little
  double taken[2] = {};
  for (const bool offload : {false, true})
    taken[offload] = check("offload", [&, how = recompute](Device device) {
      const auto network = models::make_network(c, 1, DType::bf16, device);
      network->set_recompute(how, offload);
      step_of(*network, batch_of(c, device));
    });
  // There are at once what goes into the last two blocks and what comes of them, or in backward
  // into three; of six blocks it was all that goes in, with what goes out.
  const double tokens = 2 * 4 * 4 + 2 * 3, stream = 4 * tokens * c.width();
  INFO(taken[0] << " and " << taken[1] << " by " << stream);
  CHECK(taken[0] - taken[1] >= 3 * stream);
  CHECK(pinned_allocator().stats().peak == block_size(static_cast<std::size_t>(stream)) * 6);
  CHECK(pinned_allocator().stats().current == 0);
}

TEST_CASE("a decoder: the memory of a step on a GPU") {
  models::DecoderConfig c;
  c.vocabulary = 1000;
  c.num_attention_heads = 4, c.num_key_value_heads = 2, c.attention_head_dim = 32;
  c.num_layers = 2, c.mlp_ratio = 3;
  check("decoder", [&](Device device) {
    const models::CausalDecoder decoder(c, 1, DType::bf16, device);
    models::CodeBatch batch;
    batch.samples = {{2, 4, 6, 2}};
    batch.codes.assign(48, 5);
    step_of(decoder, batch);
  });
}

TEST_CASE("a video tokenizer: the memory of a step on a GPU") {
  models::CosmosConfig c;
  c.encoder_block_out_channels = c.decode_block_out_channels = {8, 16, 16, 24};
  c.num_layers = 1;
  c.latent_channels = c.z_channels = 4;
  c.resolution = 64, c.attention_resolutions = {8};
  check("tokenizer", [&](Device device) {
    const models::CosmosAutoencoder model(c, 0, DType::bf16, device);
    ops::Tape tape;
    const Tensor pixels = Tensor::zeros({9, 8, 16, 3}, DType::f32, device);
    const Tensor made = model.decode(tape, model.encode(tape, pixels));
    tape.backward(made, Tensor::zeros(made.shape(), DType::f32, device));
  });
}

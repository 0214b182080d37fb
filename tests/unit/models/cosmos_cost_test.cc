// What decoding costs: the operations that PyTorch counts, and the memory that a run takes.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/json.h"
#include "base/one_thread.h"
#include "io/file.h"
#include "models/cosmos/cost.h"
#include "support/cosmos_drawn.h"
#include "tensor/allocator.h"

using namespace vfm;
using namespace vfm::models;

namespace {

CosmosConfig golden_config() {
  const std::string path = std::string(VFM_GOLDEN) + "/cosmos_vae/config.json";
  return CosmosConfig::from_json(parse_json(io::read_file(path), path), path);
}

/// Bytes that it took at most, as the tensors' allocator counts.
double measured(const CosmosAutoencoder& model, CosmosWork work, std::int64_t frames,
                std::int64_t side, std::int64_t step) {
  const CosmosConfig& c = model.config();
  const bool encodes = work == CosmosWork::encode;
  const std::int64_t time = encodes ? c.temporal_compression_ratio : 1;
  const std::int64_t space = encodes ? c.spatial_compression_ratio : 1;
  reset_memory_peak();
  const double before = static_cast<double>(cpu_memory().current);
  auto stream = encodes ? model.encode_stream() : model.decode_stream();
  for (std::int64_t at = 0; at < frames; at += step) {
    const std::int64_t count = std::min(step, frames - at);
    const std::int64_t given = at == 0 ? 1 + (count - 1) * time : count * time;
    stream.push(Tensor::zeros({given, side * space, side * space,
                               encodes ? c.in_channels : c.latent_channels}),
                at + step >= frames);
  }
  return static_cast<double>(cpu_memory().peak) - before;
}

}  // namespace

TEST_CASE("the operations of decoding are those that PyTorch counts") {
  // diffusers 0.42.1, torch.utils.flop_counter.FlopCounterMode over AutoencoderKLCosmos.decode of
  // the golden configuration, latents of 4 x 6.
  const CosmosConfig config = golden_config();
  const PartCost one = cosmos_decode_cost(config, 1, 4, 6, 1, Device::cpu, DType::f32);
  CHECK(one.parameters == 14639);
  // There the wavelets are convolutions: 288 operations a patch. And attention along time computes
  // what it then masks: of three frames three pairs of 24 pixels and 6 channels.
  const double patches = 8. * 12, masked = 4. * 3 * 24 * 6;
  CHECK(one.flops == 954768 - 288 * patches);
  const PartCost three = cosmos_decode_cost(config, 3, 4, 6, 3, Device::cpu, DType::f32);
  CHECK(three.flops == 4279344 - 5 * 288 * patches - masked);
  // The same work in any chunks, in less memory.
  const PartCost whole = cosmos_decode_cost(config, 5, 4, 6, 5, Device::cpu, DType::f32);
  const PartCost parts = cosmos_decode_cost(config, 5, 4, 6, 2, Device::cpu, DType::f32);
  CHECK(parts.flops == whole.flops);
  CHECK(parts.activation_bytes < whole.activation_bytes);
}

TEST_CASE("the memory of the tokenizer is what the allocator hands out") {
  const OneThread one_thread;
  CosmosConfig config = golden_config();
  config.encoder_block_out_channels = config.decode_block_out_channels = {16, 32, 64, 64};
  const CosmosAutoencoder model(config, 0, DType::f32, Device::cpu, false);
  for (const CosmosWork work : {CosmosWork::encode, CosmosWork::decode})
    for (const auto& [frames, step] :
         {std::pair{1, 1}, {2, 1}, {3, 1}, {3, 3}, {5, 3}, {9, 1}, {9, 9}}) {
      const double told =
          cosmos_cost(config, work, frames, 16, 16, step, Device::cpu, DType::f32).activation_bytes;
      INFO((work == CosmosWork::encode ? "encodes " : "decodes ")
           << frames << " frames, " << step << " at a time");
      // What the allocator rounds up is less than an eighth.
      const double taken = measured(model, work, frames, 16, step);
      CHECK(told > 0.95 * taken);
      CHECK(told < 1.25 * taken);
    }
}

// What decoding costs: the operations that PyTorch counts, and the memory that a run takes.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/json.h"
#include "base/one_thread.h"
#include "io/file.h"
#include "models/cosmos/config_json.h"
#include "models/cosmos/cost.h"
#include "support/cosmos_drawn.h"
#include "tensor/allocator.h"

using namespace vfm;
using namespace vfm::models;

namespace {

CosmosConfig golden_config() {
  const std::string path = std::string(VFM_GOLDEN) + "/cosmos_vae/config.json";
  return cosmos_config_from_json(parse_json(io::read_file(path), path), path);
}

PartCost decoding(const CosmosConfig& config, std::int64_t frames, std::int64_t height,
                  std::int64_t width, std::int64_t step) {
  return cosmos_cost(config, CosmosWork::decode, frames, height, width, step, Device::cpu,
                     DType::f32);
}

/// Bytes that `frames` latent frames took at most, as the tensors' allocator counts.
double measured(const CosmosAutoencoder& model, CosmosWork work, std::int64_t frames,
                std::int64_t side, std::int64_t step) {
  const CosmosConfig& c = model.config();
  const std::int64_t time = c.temporal_compression_ratio;
  const std::int64_t wide = side * c.spatial_compression_ratio;
  const bool encodes = work == CosmosWork::encode;
  reset_memory_peak();
  const double before = static_cast<double>(cpu_memory().current);
  auto stream = encodes ? model.encode_stream() : model.decode_stream();
  for (std::int64_t at = 0; at < frames; at += step) {
    const std::int64_t count = std::min(step, frames - at);
    stream.push(encodes ? Tensor::zeros({count * time - (at == 0 ? time - 1 : 0), wide, wide, 3})
                        : Tensor::zeros({count, side, side, c.latent_channels}),
                at + step >= frames);
  }
  return static_cast<double>(cpu_memory().peak) - before;
}

}  // namespace

TEST_CASE("the operations of decoding are those that PyTorch counts") {
  // diffusers 0.42.1, torch.utils.flop_counter.FlopCounterMode over AutoencoderKLCosmos.decode of
  // the golden configuration, latents of 4 x 6.
  const CosmosConfig config = golden_config();
  const PartCost one = decoding(config, 1, 4, 6, 1);
  CHECK(one.parameters == 14639);
  // There the wavelets are convolutions: 288 operations a patch. And attention along time computes
  // what it then masks: of three frames three pairs of 24 pixels and 6 channels.
  const double patches = 8. * 12, masked = 4. * 3 * 24 * 6;
  CHECK(one.flops == 954768 - 288 * patches);
  const PartCost three = decoding(config, 3, 4, 6, 3);
  CHECK(three.flops == 4279344 - 5 * 288 * patches - masked);
  // The same work in any chunks, in less memory.
  const PartCost whole = decoding(config, 5, 4, 6, 5);
  const PartCost parts = decoding(config, 5, 4, 6, 2);
  CHECK(parts.flops == whole.flops);
  CHECK(parts.activation_bytes < whole.activation_bytes);
}

TEST_CASE("the memory of encoding and decoding is what the allocator hands out") {
  const OneThread one_thread;
  CosmosConfig config = golden_config();
  config.encoder_block_out_channels = config.decode_block_out_channels = {16, 32, 64, 64};
  const CosmosAutoencoder model(config, 0, DType::f32, Device::cpu, false);
  for (const auto& [frames, step] :
       {std::pair{1, 1}, {2, 1}, {3, 1}, {3, 3}, {5, 3}, {9, 1}, {9, 9}}) {
    for (const CosmosWork work : {CosmosWork::encode, CosmosWork::decode}) {
      const double told =
          cosmos_cost(config, work, frames, 16, 16, step, Device::cpu, DType::f32).activation_bytes;
      const double taken = measured(model, work, frames, 16, step);
      INFO(frames << " frames, " << step << " at a time: " << told << " of " << taken);
      CHECK(told == Approx(taken).epsilon(0.03));
    }
  }
}

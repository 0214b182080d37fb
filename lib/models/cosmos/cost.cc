// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/cost.h"

#include <algorithm>

#include "models/cosmos/autoencoder.h"
#include "models/cosmos/largest_band.h"
#include "tensor/meta.h"

namespace vfm::models {
PartCost cosmos_cost(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                     std::int64_t height, std::int64_t width, std::int64_t step, Device device,
                     DType compute, int bands) {
  const MetaAccount account(device);
  const CosmosAutoencoder model(config, 0, compute, Device::meta, false);
  const std::size_t weights = account.memory().current;
  PartCost cost;
  cost.parameters = nn::element_count(model.parameters());
  const bool encodes = work == CosmosWork::encode;
  const std::int64_t time = config.temporal_compression_ratio;
  const std::int64_t space = config.spatial_compression_ratio;
  const LargestBand largest(height, bands);
  const SpatialExchange& band = largest.exchange();
  const std::int64_t rows = band.end(band.part()) - band.begin(band.part());
  auto stream = encodes ? model.encode_stream() : model.decode_stream(&band, nullptr);
  std::size_t pixels = 0;  // of a chunk
  for (std::int64_t at = 0; at < frames; at += step) {
    const std::int64_t end = std::min(frames, at + step);
    const std::int64_t of_pixels = (end - at) * time - (at == 0 ? time - 1 : 0);
    const Tensor given(encodes ? Shape{of_pixels, height * space, width * space, config.in_channels}
                               : Shape{end - at, rows, width, config.latent_channels},
                       DType::f32, Device::meta);
    const Tensor made = stream.push(given, end == frames);
    const auto share = static_cast<std::size_t>(rows);  // rank 0 gets those of all bands
    pixels = std::max(
        pixels, encodes ? given.bytes() : made.bytes() / share * static_cast<std::size_t>(height));
  }
  cost.take(account, weights);
  // The pixels once more, in planes, on their way.
  cost.host_bytes = 2 * static_cast<double>(pixels) + account.work().kept;
  return cost;
}

}  // namespace vfm::models

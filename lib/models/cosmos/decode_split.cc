// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/decode_split.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/units.h"

namespace vfm::models {
namespace {

/// The cost that is found on Device::meta is within this of what the allocator hands out.
constexpr double kCostError = 1.03;
/// Bands exchange something in each layer: they have to save a fifth of the busiest rank's work.
constexpr double kBandsCost = 1.25;

struct Latent3d {
  std::int64_t frames, height, width;
};

std::int64_t largest_part(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

/// As many bands as that, and chunks of as many frames as `room.pixels` says, or fewer so that all
/// ranks have one.
CosmosSplit with_bands(const CosmosConfig& config, const Latent3d& size, const CosmosRoom& room,
                       int ranks, int bands) {
  const std::int64_t space = config.spatial_compression_ratio;
  const std::int64_t frame = largest_part(size.height, bands) * size.width * space * space *
                             config.temporal_compression_ratio;
  CosmosSplit split;
  split.bands = bands;
  split.turns = static_cast<int>(std::min<std::int64_t>(ranks / bands, size.frames));
  split.step = std::clamp<std::int64_t>(room.pixels / std::max<std::int64_t>(1, frame), 1,
                                        largest_part(size.frames, split.turns));
  return split;
}

/// All numbers of bands, those first by which the frames should be ready first.
std::vector<CosmosSplit> splits_of(const CosmosConfig& config, CosmosWork work,
                                   const Latent3d& size, const CosmosRoom& room, int ranks) {
  std::vector<CosmosSplit> splits;
  const std::int64_t most =
      work == CosmosWork::decode ? std::min<std::int64_t>(ranks, size.height) : 1;
  for (int bands = 1; bands == 1 || bands <= most; ++bands)
    splits.push_back(with_bands(config, size, room, ranks, bands));
  const auto work_of = [&](const CosmosSplit& split) {
    return split.share(size.frames, size.height) * (split.bands > 1 ? kBandsCost : 1);
  };
  std::ranges::stable_sort(splits, {}, work_of);
  return splits;
}

}  // namespace

double CosmosSplit::share(std::int64_t frames, std::int64_t height) const {
  const std::int64_t rounds = largest_part(chunks(frames), turns);
  const auto of_frames = static_cast<double>(std::min(frames, rounds * step));
  return of_frames / static_cast<double>(frames) *
         static_cast<double>(largest_part(height, bands)) / static_cast<double>(height);
}

CosmosSplit cosmos_split(const CosmosConfig& config, CosmosWork work, std::int64_t frames,
                         std::int64_t height, std::int64_t width, const CosmosRoom& room,
                         Device device, DType compute, int ranks) {
  const std::vector<CosmosSplit> splits =
      splits_of(config, work, {frames, height, width}, room, ranks);
  if (room.memory <= 0) return splits.front();
  double least = std::numeric_limits<double>::infinity();
  for (CosmosSplit split : splits) {
    const std::int64_t usual = split.step;
    // The last try is all at once.
    for (std::int64_t i = usual; i >= 0; --i) {
      split.step = i > 0 ? i : frames;
      if (i == 0) split.turns = 1;
      const double bytes = kCostError * cosmos_cost(config, work, frames, height, width, split.step,
                                                    device, compute, split.bands)
                                            .activation_bytes;
      if (bytes <= room.memory) return split;
      least = std::min(least, bytes);
    }
  }
  const std::int64_t time = config.temporal_compression_ratio;
  const std::int64_t space = config.spatial_compression_ratio;
  fail_usage("to {} {} of {}x{} the tokenizer needs {} at least{}: --tokenizer-memory is {}",
             work == CosmosWork::encode ? "encode" : "decode",
             counted(1 + (frames - 1) * time, "frame"), width * space, height * space,
             format_bytes(least),
             ranks > 1 ? " on each of " + std::to_string(ranks) + " ranks" : std::string(),
             format_bytes(room.memory));
}

}  // namespace vfm::models

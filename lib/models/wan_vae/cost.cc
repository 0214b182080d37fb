// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/cost.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "base/counted.h"
#include "base/error.h"
#include "base/units.h"
#include "models/cosmos/largest_band.h"
#include "models/wan_vae/autoencoder.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

/// The cost that is found on Device::meta is within this of what the allocator hands out.
constexpr double kCostError = 1.03;
/// Bands that keep all threads of a CPU, or a GPU, at work; and those with which a limit is tried.
constexpr std::int64_t kBand = std::int64_t{1} << 15, kBandGpu = std::int64_t{1} << 19;
constexpr std::int64_t kLeastBand = std::int64_t{1} << 13;
/// From this latent frame on each layer has all earlier frames that it keeps.
constexpr std::int64_t kSteady = 3;

/// Passes the frames of a latent frame through the network.
class Frames {
 public:
  Frames(const WanAutoencoder& model, const WanVaeWork& work, std::int64_t band_pixels)
      : model_(model), work_(work), largest_(work.height, work.bands) {
    if (work.encodes)
      encoder_.emplace(model.encoder(band_pixels));
    else
      decoder_.emplace(model.decoder(band_pixels, &largest_.exchange()));
  }

  void push(std::int64_t latent, bool last) {
    const WanVaeConfig& c = model_.config();
    if (!work_.encodes) {
      const SpatialExchange& band = largest_.exchange();
      const std::int64_t rows = band.end(band.part()) - band.begin(band.part());
      const Tensor given({rows, work_.width, c.z_dim}, DType::f32, Device::meta);
      return decoder_->push(given, last, [](const Tensor&) {});
    }
    const std::int64_t factor = c.space_factor() / c.patch_size;
    const int frames = latent == 0 ? 1 : c.time_factor();
    for (int i = 0; i < frames; ++i) {
      const Tensor given({work_.height * factor, work_.width * factor, c.in_channels}, DType::f32,
                         Device::meta);
      encoder_->push(given, last && i + 1 == frames);
    }
  }

 private:
  const WanAutoencoder& model_;
  const WanVaeWork& work_;
  LargestBand largest_;
  std::optional<WanAutoencoder::Encoder> encoder_;
  std::optional<WanAutoencoder::Decoder> decoder_;
};

}  // namespace

// Of a band neighbours need two rows.
int wan_vae_bands(std::int64_t height, int ranks) {
  return static_cast<int>(std::clamp<std::int64_t>(height / 2, 1, ranks));
}

PartCost wan_vae_cost(const WanVaeConfig& config, const WanVaeWork& work, std::int64_t band_pixels,
                      Device device, DType compute) {
  const MetaAccount account(device);
  const WanAutoencoder model(config, compute, Device::meta);
  const std::size_t weights = account.memory().current;
  PartCost cost;
  cost.parameters = nn::element_count(model.parameters());
  Frames frames(model, work, band_pixels);
  // Of steady frames one stands for all.
  const std::int64_t run = std::min(work.frames, kSteady + 2);
  KernelCalls before, steady;
  double flops = 0;
  for (std::int64_t i = 0; i < run; ++i) {
    if (i == kSteady) before = account.calls(), flops = account.work().flops;
    frames.push(i, i + 1 == run);
    if (i != kSteady) continue;
    add_calls(steady, account.calls());
    add_calls(steady, before, -1);
    flops = account.work().flops - flops;
  }
  cost.take(account, weights);
  const auto others = static_cast<double>(work.frames - run);
  add_calls(cost.calls, steady, others);
  cost.flops += flops * others;
  // The pixels of a latent frame in planes, on their way.
  const double pixels = 3.0 * static_cast<double>(work.height * work.width) *
                        config.space_factor() * config.space_factor();
  const double shown = work.encodes ? 1 : work.frames > 1 ? config.time_factor() : 1;
  cost.host_bytes = sizeof(float) * pixels * shown + account.work().kept;
  return cost;
}

std::int64_t wan_vae_band(const WanVaeConfig& config, const WanVaeWork& work, double memory,
                          Device device, DType compute) {
  const std::int64_t usual = device == Device::cuda ? kBandGpu : kBand;
  if (memory <= 0) return usual;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t band = usual; band >= kLeastBand; band /= 4) {
    const double bytes =
        kCostError * wan_vae_cost(config, work, band, device, compute).activation_bytes;
    if (bytes <= memory) return band;
    least = std::min(least, bytes);
  }
  const std::int64_t space = config.space_factor();
  const std::string ranks =
      work.bands > 1 ? " on each of " + std::to_string(work.bands) + " ranks" : std::string();
  fail_usage("to {} {} of {}x{} the tokenizer needs {} at least{}: --tokenizer-memory is {}",
             work.encodes ? "encode" : "decode",
             counted(1 + (work.frames - 1) * config.time_factor(), "frame"), work.width * space,
             work.height * space, format_bytes(least), ranks, format_bytes(memory));
}

}  // namespace vfm::models

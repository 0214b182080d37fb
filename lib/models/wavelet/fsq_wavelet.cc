// SPDX-License-Identifier: Apache-2.0
#include "models/wavelet/fsq_wavelet.h"

#include <algorithm>

#include "models/tokenizer_family.h"

namespace vfm::models {

FsqWaveletTokenizer::FsqWaveletTokenizer(std::vector<int> levels, int time_factor, int space_factor,
                                         Device device)
    : fsq_(std::move(levels)),
      wavelet_(static_cast<int>(fsq_.dimensions()), time_factor, space_factor, device) {
  for (const WaveletTokenizer::Band& band : wavelet_.bands()) {
    const bool mean = band.time == 0 && !band.high_x && !band.high_y;
    factors_.push_back(band.colour == 0 ? (mean ? 1.6f : 8.f) : (mean ? 5.f : 16.f));
  }
}

std::vector<std::int32_t> FsqWaveletTokenizer::encode_codes(std::span<const float> pixels,
                                                            int frames, int height,
                                                            int width) const {
  std::vector<float> latent = wavelet_.encode(pixels, frames, height, width);
  const std::size_t places = latent.size() / factors_.size();
  for (std::size_t i = 0; i < latent.size(); ++i)
    latent[i] *= factors_[i / places];
  std::vector<std::int32_t> codes(places);
  for (std::size_t i = 0; i < places; ++i)
    codes[i] = fsq_.encode(latent.data() + i, places);
  return codes;
}

std::vector<float> FsqWaveletTokenizer::encode(std::span<const float> pixels, int frames,
                                               int height, int width) const {
  return latent_of_codes(encode_codes(pixels, frames, height, width));
}

std::vector<float> FsqWaveletTokenizer::decode(std::span<const float> latents, int frames,
                                               int height, int width) const {
  if (wavelet_.device() == Device::meta) return wavelet_.decode(latents, frames, height, width);
  const std::size_t places = latents.size() / factors_.size();
  std::vector<float> bands(latents.size());
  for (std::size_t i = 0; i < bands.size() && places > 0; ++i) {
    const std::size_t channel = std::min(i / places, factors_.size() - 1);
    bands[i] = fsq_.unbound(channel, latents[i]) / factors_[channel];
  }
  return wavelet_.decode(bands, frames, height, width);
}

std::vector<float> FsqWaveletTokenizer::latent_of_codes(std::span<const std::int32_t> codes) const {
  std::vector<float> latent(codes.size() * factors_.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    fsq_.values(codes[i], latent.data() + i, codes.size());
  return latent;
}

TokenizerConfig FsqWaveletTokenizer::config() const {
  return {.name = std::string(kFsqWaveletFamily.name),
          .levels = fsq_.levels(),
          .time_factor = time_factor(),
          .space_factor = space_factor()};
}

}  // namespace vfm::models

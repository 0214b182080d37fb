// builtin:fsq, the discrete tokenizer that needs no weights. Fixed factors scale the first bands of
// builtin:wavelet (models/wavelet/wavelet.h) to one range, and the result is quantised
// (models/fsq.h). A code holds one latent pixel: its mean colour, the change of that in time, and
// so on. The number of bands is the number of levels.
//
// The factors give the bands of moving pictures a standard deviation near 1: 1.6 and 5 for the mean
// of luma and of chroma, 8 and 16 for their details.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/fsq.h"
#include "models/wavelet/wavelet.h"

namespace vfm::models {

extern const TokenizerFamily kFsqWaveletFamily;

class FsqWaveletTokenizer final : public VideoTokenizer {
 public:
  /// Throws Error for levels that Fsq does not take, or factors that WaveletTokenizer does not
  /// take.
  FsqWaveletTokenizer(std::vector<int> levels, int time_factor, int space_factor,
                      Device device = Device::cpu);

  int channels() const override { return wavelet_.channels(); }
  int time_factor() const override { return wavelet_.time_factor(); }
  int space_factor() const override { return wavelet_.space_factor(); }
  int vocabulary() const override { return fsq_.codes(); }
  /// Latents are the codes' values, in [-1, 1].
  std::vector<float> encode(std::span<const float> pixels, int frames, int height,
                            int width) const override;
  std::vector<float> decode(std::span<const float> latents, int frames, int height,
                            int width) const override;
  std::vector<std::int32_t> encode_codes(std::span<const float> pixels, int frames, int height,
                                         int width) const override;
  std::vector<float> latent_of_codes(std::span<const std::int32_t> codes) const override;
  TokenizerConfig config() const override;

 private:
  Fsq fsq_;
  WaveletTokenizer wavelet_;
  std::vector<float> factors_;
};

}  // namespace vfm::models

// builtin:wavelet, the tokenizer that needs no weights: a causal 3D wavelet whose low bands are the
// latent. It is linear, deterministic, and exactly invertible if all bands are kept.
//
// Colour  R'G'B' in [-1, 1] to Y'CbCr (the full-range BT.601 matrix of JPEG), so Cb and Cr are in
//         [-1, 1] too.
// Time    The first frame stands alone. Then come groups of F = time_factor frames, each by itself.
//         The low pass is the mean of the group (Haar). Details come from halving again and again:
//         d = (a - b) / 2, where a and b are the halves of a span, minus what a straight line
//         through the neighbouring spans of the group predicts. So dropping a detail means "moves
//         on evenly", not "stands still, then jumps". (This average-interpolating lifting step
//         makes CDF(1,3) of Haar, one-sided at the ends of the group.)
// Space   CDF 9/7 by lifting, whole-sample symmetric at the borders, log2(space_factor) levels, as
//         the irreversible path of JPEG 2000 (ITU-T T.800, annex F). It is smooth, so no tiles
//         show.
// Scale   Every filter has gain 1 where it passes most, so all channels have the scale of pixels. A
//         mean is in [-1, 1]; details are smaller. The first frame is its own mean, and its time
//         details are 0, so a still image is frame 0 of a video, in the same units.
//
// A latent pixel holds F * S^2 * 3 coefficients (S = space_factor), in a fixed order of expected
// energy. `channels` keeps the first of them. The cost of a coefficient, ascending, is
//     20 * (octaves above the lowest in x and y) + 16 * (octaves in time) + 3 if it is chroma
// The coarsest detail is one octave above the low pass in its direction. The energy of moving
// pictures falls by a factor of about 4 per octave of space and 3 per octave of time; chroma is a
// little below luma. On ties diagonal bands come last, then colour, time, band and place decide.
//
// Measured: PSNR in dB over 17 frames of 64 x 64. The row "shapes" is for a coloured circle or
// square, radius 10 to 14, moving 20 to 30 pixels on grey. The row "film" is for three films scaled
// to 64 x 64. The row "overlap" is the mean IoU of the decoded shape, cut at half contrast, with
// the drawn shape. K is `channels`.
//
//   F = 8, K         12     24     32     48     96    192      F = 4, K    12     24     32
//   shapes         28.8   30.1   30.1   30.8   32.7   33.4                30.2   31.3   31.4
//   film           26.0   26.4   29.2   30.1   30.8   37.6                26.4   26.6   29.6
//   overlap        .916   .933   .936   .944   .964   .968                .929   .951   .953
//   plain Haar in time: overlap .842 (12), .899 (24), .912 (48)
//   Haar in time and space, best bands for the data: shapes 23.9 (12), 24.9 (24), 26.9 (48)
//
// On a GPU (wavelet_cuda.cc) the same operations run in the same order for every number, so results
// equal the CPU's, bit for bit.
//
// K = 24 keeps the low band with mean, half and quarter details, and the horizontal and vertical
// bands of level 3 with mean and half details, of Y, Cb and Cr alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "models/tokenizer.h"

namespace vfm::models {

struct TokenizerFamily;
extern const TokenizerFamily kWaveletFamily;

class WaveletTokenizer final : public VideoTokenizer {
 public:
  /// time_factor 1, 2, 4, 8 or 16; space_factor 2, 4, 8 or 16; 1 <= channels <= 3 F S^2. Throws
  /// Error{usage}. `gpu_pixels` is the number of pixels, of all frames together, that are on the
  /// GPU at once, but at least those of one latent frame; each takes up to 36 bytes. On
  /// Device::meta nothing is computed and results are empty. An account (tensor/meta.h) counts the
  /// working memory.
  WaveletTokenizer(int channels, int time_factor, int space_factor, Device device = Device::cpu,
                   std::int64_t gpu_pixels = std::int64_t{1} << 24);

  int channels() const override { return static_cast<int>(bands_.size()); }
  Device device() const { return device_; }
  int time_factor() const override { return time_; }
  int space_factor() const override { return space_; }
  /// Throws Error if the sizes do not fit each other or the factors.
  std::vector<float> encode(std::span<const float> pixels, int frames, int height,
                            int width) const override;
  std::vector<float> decode(std::span<const float> latents, int frames, int height,
                            int width) const override;
  TokenizerConfig config() const override;

  /// The coefficient that a channel holds.
  struct Band {
    int colour = 0;       ///< 0 Y', 1 Cb, 2 Cr
    int time = 0;         ///< 0 the mean, then details from coarse to fine: 1; 2, 3; 4..7; ...
    int level = 0;        ///< level of the spatial band: 1 finest .. log2 S
    bool high_x = false;  ///< detail in x; neither high: low band of the last level
    bool high_y = false;
    int row = 0,
        column = 0;  ///< which of the 2^(levels - level) squared places in the latent pixel
  };
  const std::vector<Band>& bands() const { return bands_; }

 private:
  /// Copies one plane (colour, time row) of one latent frame between `plane` and its part of the
  /// latent.
  void gather(const float* plane, int height, int width, int colour, int row, float* latent,
              std::size_t channel_stride) const;
  void scatter(const float* latent, std::size_t channel_stride, int height, int width, int colour,
               int row, float* plane) const;

  /// The coefficient of latent pixel (y, x) is plane[(top + y * step) * width + left + x * step].
  struct Place {
    int top, left, step;
  };
  Place place_of(const Band& band, int height, int width) const;

  /// The implementations for each device, called by VFM_RUN (ops/run.h): wavelet.cc,
  /// wavelet_cuda.cc. Sizes were checked before.
  struct cpu {
    static std::vector<float> encode(const WaveletTokenizer& t, std::span<const float> pixels,
                                     int frames, int height, int width);
    static std::vector<float> decode(const WaveletTokenizer& t, std::span<const float> latents,
                                     int frames, int height, int width);
  };
  struct cuda {
    static std::vector<float> encode(const WaveletTokenizer& t, std::span<const float> pixels,
                                     int frames, int height, int width);
    static std::vector<float> decode(const WaveletTokenizer& t, std::span<const float> latents,
                                     int frames, int height, int width);
  };
  struct Gpu;  ///< defined in wavelet_cuda.cc

  /// Working memory for a latent of this size. On Device::meta it is only counted.
  struct CpuRoom {
    CpuRoom(const WaveletTokenizer& t, int frames, int height, int width, Device device);
    Tensor colours;    ///< the pixels of one latent frame, a plane for each colour and frame
    Tensor plane;      ///< one colour and time row
    Tensor transform;  ///< room of PlaneTransform
  };
  struct GpuRoom {
    GpuRoom(const WaveletTokenizer& t, int frames, int height, int width, Device device);
    std::int64_t batch;  ///< number of latent frames processed at a time
    Tensor video;        ///< the pixels of a batch
    Tensor even, odd;    ///< planes of the batch, after an even and an odd number of levels
    Tensor latents;      ///< latents of all frames
  };
  /// Counts the memory of work on a latent of this size, without pixels and latents. Returns
  /// nothing.
  std::vector<float> count(int frames, int height, int width) const;

  int time_, space_, levels_;
  Device device_;
  std::int64_t gpu_pixels_;
  std::vector<Band> bands_;
  std::vector<float> time_analysis_, time_synthesis_;  ///< F x F, row-major
  std::vector<bool> row_used_;                         ///< 3 x F: colour, time row
};

}  // namespace vfm::models

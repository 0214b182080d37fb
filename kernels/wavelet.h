// The transforms of the tokenizer builtin:wavelet (lib/models/wavelet/wavelet.h has the formulas):
// colour and groups of frames to planes, CDF 9/7 in space, coefficients to latents; and their
// inverses.
//
// The bits equal the CPU's: the same operations on each number in the same order, each rounded to
// f32, none fused. A latent is therefore the same on every device.
//
// A batch is `frames` latent frames of a video. Each latent frame has P planes of the size of a
// picture, one for each pair (colour, time row) of `rows`, in that order. The planes of a batch lie
// one after the other. A plane exists twice, in an even and an odd array: the coefficients of level
// l are in array l % 2, in Mallat's layout (the low band at the top left), and level 0 is the plane
// itself. So no level overwrites its own input, and nothing is copied.
//
// Shape letters: F frames in a latent frame, T frames of the batch, H W pixels, t h w latent,
// S = 2^levels, C channels, P planes of a latent frame.
//
// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for
// sizes that are negative, do not fit each other, or are too large for a grid. Empty calls succeed.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

inline constexpr int kWaveletMostTime = 16;

/// The sizes of pixels and planes.
struct WaveletBatch {
  int time = 1;             ///< F: 1, 2, 4, 8 or 16
  bool single = false;      ///< latent frame 0 is a single frame, the first of the video
  std::int64_t frames = 0;  ///< t; T = t F, or 1 + (t - 1) F if `single`
  int height = 0, width = 0;
  std::uint64_t rows = 0;  ///< which planes exist: bit colour * F + time row
  float matrix[kWaveletMostTime * kWaveletMostTime] = {};  ///< F x F, row-major
};

/// Computes planes [t, P, H, W] from RGB pixels (3, T, H, W). Row r of a colour (Y', Cb, Cr) is the
/// sum of matrix[r, f] * frame f. A single frame is row 0, and its other rows are 0.
int wavelet_split(const WaveletBatch& batch, const float* pixels, float* planes,
                  CUstream_st* stream);
/// Computes pixels from planes. Frame f of a colour is the sum of matrix[f, r] * row r; rows
/// without a plane are 0. A single frame is its row 0.
int wavelet_merge(const WaveletBatch& batch, const float* planes, float* pixels,
                  CUstream_st* stream);

/// One level of CDF 9/7 on many planes.
struct WaveletLevel {
  std::int64_t planes = 0;
  int height = 0, width = 0;  ///< of a plane, multiples of 2^level
  int level = 1;              ///< the level that is computed or inverted; 1 is the finest
  bool details = true;        ///< false: writes only the low band, or takes the details as 0
};

/// wavelet_analyse() splits the top left (H >> (level - 1)) x (W >> (level - 1)) of `from` into its
/// four bands in `to`. wavelet_synthesise() joins the bands in `from` to that part of `to`. The
/// rest of `to` is unchanged.
int wavelet_analyse(const WaveletLevel& level, const float* from, float* to, CUstream_st* stream);
int wavelet_synthesise(const WaveletLevel& level, const float* from, float* to,
                       CUstream_st* stream);

/// The place of a channel of a latent: latent pixel (y, x) is element `offset` + (y W + x) `step`
/// of a plane.
struct WaveletBand {
  std::int64_t offset = 0;
  int plane = 0;  ///< index in its latent frame, below P
  int level = 0;  ///< level % 2 is the array
  int step = 1;
};

/// Planes, and latents (C, all, h, w); the batch is frames first .. first + frames - 1 of the
/// latents.
struct WaveletChannels {
  const WaveletBand* bands = nullptr;  ///< [C] on the device
  int channels = 0, planes = 0;        ///< C, P
  int levels = 1;
  std::int64_t first = 0, frames = 0, all = 0;
  int height = 0, width = 0;  ///< of a plane
};

int wavelet_gather(const WaveletChannels& c, const float* even, const float* odd, float* latents,
                   CUstream_st* stream);
/// Writes only elements that the channels hold; the caller must clear the rest.
int wavelet_scatter(const WaveletChannels& c, const float* latents, float* even, float* odd,
                    CUstream_st* stream);

}  // namespace vfm::kernels

// The transforms of the tokenizer builtin:wavelet (lib/models/wavelet/wavelet.h has the formulas):
// colour and groups of frames to planes, CDF 9/7 in space, coefficients to latents; and all of it
// back.
//
// Bit for bit what the CPU computes: the same operations in the same order on each number, every
// one rounded to f32, none fused. So a latent is the same wherever it was made.
//
// A batch is `frames` latent frames of a video. Each has P planes of the size of a picture, one for
// each pair (colour, time row) of `rows`, in that order; the planes of a batch stand one after the
// other. A plane exists twice, in an even and an odd array: the coefficients of level l are in
// array l % 2, in Mallat's layout (the low band top left), and level 0 is the plane itself. So no
// level overwrites what it reads, and nothing is copied.
//
// Shape letters: F frames in a latent frame, T frames of the batch, H W pixels, t h w latent,
// S = 2^levels, C channels, P planes of a latent frame.
//
// All return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes that
// are negative, do not fit each other, or are too large for a grid. Nothing to do is a success.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

inline constexpr int kWaveletMostTime = 16;

/// Pixels and planes.
struct WaveletBatch {
  int time = 1;             ///< F: 1, 2, 4, 8 or 16
  bool single = false;      ///< latent frame 0 is one frame, the first of the video
  std::int64_t frames = 0;  ///< t; T = t F, or 1 + (t - 1) F if `single`
  int height = 0, width = 0;
  std::uint64_t rows = 0;  ///< bit colour * F + time row: which planes there are
  float matrix[kWaveletMostTime * kWaveletMostTime] = {};  ///< F x F, row-major
};

/// planes [t, P, H, W] from RGB pixels (3, T, H, W): row r of a colour (Y', Cb, Cr) is the sum of
/// matrix[r, f] * frame f. A single frame is row 0, its other rows are 0.
int wavelet_split(const WaveletBatch& batch, const float* pixels, float* planes,
                  CUstream_st* stream);
/// pixels from planes: frame f of a colour is the sum of matrix[f, r] * row r; rows that are not
/// there are 0. A single frame is its row 0.
int wavelet_merge(const WaveletBatch& batch, const float* planes, float* pixels,
                  CUstream_st* stream);

/// One level of CDF 9/7 on many planes.
struct WaveletLevel {
  std::int64_t planes = 0;
  int height = 0, width = 0;  ///< of a plane, multiples of 2^level
  int level = 1;              ///< the one that is made, or undone: 1 is the finest
  bool details = true;        ///< false: only the low band is written; or the details are 0, unread
};

/// The top left (H >> (level - 1)) x (W >> (level - 1)) of `from` into its four bands in `to`; and
/// the bands of `from` into that part of `to`. The rest of `to` stays as it is.
int wavelet_analyse(const WaveletLevel& level, const float* from, float* to, CUstream_st* stream);
int wavelet_synthesise(const WaveletLevel& level, const float* from, float* to,
                       CUstream_st* stream);

/// Where a channel of a latent lies: latent pixel (y, x) at `offset` + (y W + x) `step` of a plane.
struct WaveletBand {
  std::int64_t offset = 0;
  int plane = 0;  ///< of its latent frame, below P
  int level = 0;  ///< which array: level % 2
  int step = 1;
};

/// Planes and latents, (C, all, h, w), of which the batch is frames first .. first + frames - 1.
struct WaveletChannels {
  const WaveletBand* bands = nullptr;  ///< [C] on the device
  int channels = 0, planes = 0;        ///< C, P
  int levels = 1;
  std::int64_t first = 0, frames = 0, all = 0;
  int height = 0, width = 0;  ///< of a plane
};

int wavelet_gather(const WaveletChannels& c, const float* even, const float* odd, float* latents,
                   CUstream_st* stream);
/// Writes only what the channels hold; the caller has cleared the rest.
int wavelet_scatter(const WaveletChannels& c, const float* latents, float* even, float* odd,
                    CUstream_st* stream);

}  // namespace vfm::kernels

// One level of the Haar wavelet in three directions on a whole video: the CUDA version of what
// lib/ops/conv/haar.h does to each block of pixels, with the same bits.
//
// Eight neighbours, two along each of time, rows and columns, become eight bands at one place: fine
// [F, H, W, C] <-> coarse [F / 2, H / 2, W / 2, 8 C], band slowest. The first `repeated` frames of
// the fine video are equal and stored once.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct HaarLevel {
  std::int64_t frames = 0, height = 0, width = 0, channels = 0;  ///< F, H, W, C; all but C even
  std::int64_t repeated = 1;  ///< 1, or even; F - repeated + 1 frames are stored
  /// If true, the last of the repeated frames has the values and the others are zero; else all have
  /// them.
  bool last_only = false;
  float scale = 1;
};

/// Return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for odd or negative
/// sizes or more than 2^38 elements.
int haar_split(const HaarLevel& level, const float* fine, float* coarse, CUstream_st* stream);
/// The transpose of haar_split, including the scale. The repeated frames become the last of them if
/// last_only, else their sum.
int haar_merge(const HaarLevel& level, const float* coarse, float* fine, CUstream_st* stream);

}  // namespace vfm::kernels

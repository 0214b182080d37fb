// One level of the Haar wavelet in three directions: the CUDA version of what lib/ops/conv/haar.h
// does to each block of pixels, here to the whole video. The same arithmetic as there, to the bit.
//
// Eight neighbours, two along each of time, rows and columns, become eight bands of one place:
// fine [F, H, W, C] <-> coarse [F / 2, H / 2, W / 2, 8 C], band slowest. Of the fine video the
// first `repeated` frames are one, which is stored once. Thread-safety: launches on the given
// stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct HaarLevel {
  std::int64_t frames = 0, height = 0, width = 0, channels = 0;  ///< F, H, W, C; all but C even
  std::int64_t repeated = 1;  ///< 1, or even: stored are F - repeated + 1 frames
  /// Of the repeated frames the last alone counts, and the others are zeros; else all count.
  bool last_only = false;
  float scale = 1;
};

/// Return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for odd or negative
/// sizes or more than 2^38 elements.
int haar_split(const HaarLevel& level, const float* fine, float* coarse, CUstream_st* stream);
/// Its transpose, the scale too: of repeated frames the last, or the sum of all.
int haar_merge(const HaarLevel& level, const float* coarse, float* fine, CUstream_st* stream);

}  // namespace vfm::kernels

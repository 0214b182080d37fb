// Finite scalar quantisation with its gradient, and the distance of a reconstruction from the
// picture, for training a tokenizer. The CUDA versions of lib/ops/pointwise/fsq.h and
// lib/ops/loss/pixel_error.h, which have the formulas.
//
// Sums are in double, in an order that depends only on the sizes.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

inline constexpr int kMostLevels = 16;

/// Bounds and rounding of each number of a place.
struct FsqLevels {
  int dimensions = 0;  ///< 1 to kMostLevels
  float half[kMostLevels], offset[kMostLevels], shift[kMostLevels];
  float lowest[kMostLevels], highest[kMostLevels];  ///< lowest and highest level, around 0
  float middle[kMostLevels];                        ///< divisor of the levels
};

/// Device pointers of one call. `count` is the number of values; those of a place are consecutive.
struct Fsq {
  FsqLevels levels;
  std::int64_t count = 0;
  const float* z = nullptr;
  const float* gradient = nullptr;  ///< gradient of the values; null in forward
  float* out = nullptr;             ///< output: the values, or the gradient of z
};

/// Both return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for negative
/// sizes or sizes that do not fit.
int fsq(const Fsq& call, CUstream_st* stream);

struct PixelError {
  std::int64_t count = 0;
  const float* output = nullptr;
  const float* target = nullptr;
  float l1 = 0, l2 = 0, scale = 0;
  float* seed = nullptr;      ///< null if not wanted
  double* partial = nullptr;  ///< scratch of pixel_error_partials(count) numbers
  double* sums = nullptr;     ///< [2]: sum of absolute differences, sum of squares
};

std::int64_t pixel_error_partials(std::int64_t count);
int pixel_error(const PixelError& call, CUstream_st* stream);

}  // namespace vfm::kernels

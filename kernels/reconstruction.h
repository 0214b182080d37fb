// What training a tokenizer needs besides its network: finite scalar quantisation with its
// gradient, and how far a reconstruction is from the picture. The CUDA versions of
// lib/ops/pointwise/fsq.h and lib/ops/loss/pixel_error.h, where the formulas are.
//
// Sums are taken in double, in an order that depends on the sizes alone. Thread-safety: launches
// on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

inline constexpr int kMostLevels = 16;

/// How each of the numbers of a place is bounded and rounded.
struct FsqLevels {
  int dimensions = 0;  ///< 1 to kMostLevels
  float half[kMostLevels], offset[kMostLevels], shift[kMostLevels];
  float lowest[kMostLevels], highest[kMostLevels];  ///< of the levels, around 0
  float middle[kMostLevels];                        ///< what they are divided by
};

/// Device pointers of one call; count numbers, those of a place one after the other.
struct Fsq {
  FsqLevels levels;
  std::int64_t count = 0;
  const float* z = nullptr;
  const float* gradient = nullptr;  ///< of the values; null: forward
  float* out = nullptr;             ///< values, or the gradient of z
};

/// Both return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for negative
/// or odd sizes.
int fsq(const Fsq& call, CUstream_st* stream);

struct PixelError {
  std::int64_t count = 0;
  const float* output = nullptr;
  const float* target = nullptr;
  float l1 = 0, l2 = 0, scale = 0;
  float* seed = nullptr;      ///< or null
  double* partial = nullptr;  ///< pixel_error_partials(count) numbers to work with
  double* sums = nullptr;     ///< [2]: of absolute differences, of squares
};

std::int64_t pixel_error_partials(std::int64_t count);
int pixel_error(const PixelError& call, CUstream_st* stream);

}  // namespace vfm::kernels

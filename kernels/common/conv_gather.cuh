// Finds the pixels of a convolution's source for a pixel of the result, and tells whether tensor
// cores support a call. Device code and checks for launchers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conv.h"

namespace vfm::kernels {

// Kernels are made apart for images of one frame (kFrames is false), and for what need not divide
// by the strides (kDivides is false), since finding pixels takes as much time as a product.
__host__ __device__ inline bool conv_frames(const ConvGather& g) {
  return g.frames > 1 || g.out_frames > 1 || g.kernel_frames > 1;
}
__host__ __device__ inline bool conv_divides(const ConvGather& g) {
  return g.back && (g.stride_y > 1 || g.stride_x > 1 || g.stride_t > 1);
}

/// A pixel of the result, as a position in the source before a tap is added.
struct ConvPixel {
  std::int64_t image;  ///< offset of its image in the source
  int y, x;            ///< before division by the stride in the backward direction
  int t = 0;
};

/// A tap and a channel.
struct ConvTap {
  int y, x, channel, t;
};

/// A position outside of the source, whatever a tap adds.
inline constexpr int kConvNowhere = -(1 << 30);

__device__ __forceinline__ ConvPixel conv_pixel(const ConvGather& g, std::int64_t image, int y,
                                                int x, int t = 0) {
  if (g.back) return {image * g.step, y + g.pad_top, x + g.pad_left, t + g.pad_front};
  return {image * g.step, y * g.stride_y - g.pad_top, x * g.stride_x - g.pad_left,
          t * g.stride_t - g.pad_front};
}

/// Returns the pixel of row r of the product; kConvNowhere if there is no such row.
template <bool kFrames>
__device__ __forceinline__ ConvPixel conv_pixel(const ConvGather& g, std::int64_t r,
                                                std::int64_t rows) {
  if (r >= rows) return {0, kConvNowhere, kConvNowhere, 0};
  const std::int64_t line = r / g.out_width, plane = line / g.out_height;
  const int y = static_cast<int>(line - plane * g.out_height);
  const int x = static_cast<int>(r - line * g.out_width);
  if constexpr (!kFrames) return conv_pixel(g, plane, y, x);
  const std::int64_t image = plane / g.out_frames;
  return conv_pixel(g, image, y, x, static_cast<int>(plane - image * g.out_frames));
}

template <bool kFrames>
__device__ __forceinline__ ConvTap conv_tap(const ConvGather& g, int k) {
  const unsigned tap = static_cast<unsigned>(k) / static_cast<unsigned>(g.channels);
  const unsigned line = tap / static_cast<unsigned>(g.kernel_width);
  const unsigned t = kFrames ? line / static_cast<unsigned>(g.kernel_height) : 0;
  return {static_cast<int>(line) - static_cast<int>(t) * g.kernel_height,
          static_cast<int>(tap) - static_cast<int>(line) * g.kernel_width,
          k - static_cast<int>(tap) * g.channels, static_cast<int>(t)};
}

/// Moves to the tap and channel `by` further, without a division.
template <bool kFrames>
__device__ __forceinline__ void advance(const ConvGather& g, ConvTap& tap, int by) {
  for (tap.channel += by; tap.channel >= g.channels; tap.channel -= g.channels)
    if (++tap.x == g.kernel_width) {
      tap.x = 0, ++tap.y;
      if constexpr (kFrames)
        if (tap.y == g.kernel_height) tap.y = 0, ++tap.t;
    }
}

/// Returns the offset of the element at this tap, or -1 if it is outside of the source.
template <bool kFrames, bool kDivides = true>
__device__ __forceinline__ std::int64_t conv_element(const ConvGather& g, const ConvPixel& p,
                                                     const ConvTap& tap) {
  int y = g.back ? p.y - tap.y : p.y + tap.y, x = g.back ? p.x - tap.x : p.x + tap.x;
  if (kDivides && conv_divides(g)) {
    if (y < 0 || x < 0 || y % g.stride_y != 0 || x % g.stride_x != 0) return -1;
    y /= g.stride_y, x /= g.stride_x;
  }
  if (y < 0 || y >= g.height || x < 0 || x >= g.width) return -1;
  std::int64_t line = y;
  if constexpr (kFrames) {
    int t = g.back ? p.t - tap.t : p.t + tap.t;
    if (kDivides && conv_divides(g)) {
      if (t < 0 || t % g.stride_t != 0) return -1;
      t /= g.stride_t;
    }
    if (t < 0 || t >= g.frames) return -1;
    line += std::int64_t{t} * g.height;
  }
  return p.image + (line * g.width + x) * g.channels + tap.channel;
}

/// In conv_tensor.cu: needs bf16, channels and columns in multiples of 8, and pointers aligned to
/// 16 bytes.
bool conv_on_tensor_cores(const ConvGather& gather, Type type, int columns, const void* a,
                          const void* b, const void* c, const void* d);
int conv_product_tensor(const ConvProduct& call, CUstream_st* stream);
int conv_weights_tensor(const ConvWeights& call, CUstream_st* stream);

}  // namespace vfm::kernels

// Convolutions of channels-last images, of one frame or several, as matrix products whose left
// operand is gathered on the fly: the CUDA version of lib/ops/conv/conv2d.h. Forward, the gradient
// of x, and the gradient of the weights.
//
// A row of a product is a pixel of the result, a column is an output channel, and the sum runs over
// (tap, channel). Pixels are not unfolded in memory: at 128 channels, writing and reading them once
// would take longer than the product. bf16 with channels in multiples of 8 and 16-byte alignment
// runs on tensor cores (conv_tensor.cu), in tiles of 128 pixels by 128 channels, with three steps
// of 64 in flight. Everything else runs on plain arithmetic (conv.cu), which is slow. The order of
// a pixel's sum does not depend on what else is computed, and there are no atomics.
//
// Shape letters: R rows, the pixels of the result; N output channels; C channels of the source; A
// taps of the kernel, its frames times its height times its width.
// All functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for
// sizes that are negative or above a stated limit. Thread-safety: launches on the given stream;
// keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The pixels of the source that a pixel (t, y, x) of the result uses:
/// (t * stride - pad + kt, y * stride - pad + ky, ...). If `back`, for gradients,
/// ((t + pad - kt) / stride, ...) if that is a whole number. Outside its edges the source is zero.
struct ConvGather {
  std::int64_t images = 0;
  std::int64_t step = 0;  ///< elements from an image of the source to the next; images may overlap
  int height = 0, width = 0, channels = 0;  ///< of the source; C
  int out_height = 0, out_width = 0;        ///< of the result
  int kernel_height = 1, kernel_width = 1;
  int stride_y = 1, stride_x = 1;
  int pad_top = 0, pad_left = 0;
  int frames = 1, out_frames = 1;  ///< of an image of the source, and of the result
  int kernel_frames = 1, stride_t = 1, pad_front = 0;
  bool back = false;

  constexpr std::int64_t rows() const {  ///< R
    return images * out_frames * out_height * out_width;
  }
  constexpr int taps() const { return kernel_frames * kernel_height * kernel_width; }  ///< A
  constexpr int depth() const { return taps() * channels; }                            ///< A C
};

/// y[r, n] = sum of w[n, tap, c] * source[pixel of r and tap, c], + bias[n] + residual[r, n].
struct ConvProduct {
  ConvGather gather;
  Type type = Type::f32;  ///< of source, weights, residual and y
  int columns = 0;        ///< N
  const void* source = nullptr;
  const void* weights = nullptr;   ///< [N, A, C], from conv_arrange
  const float* bias = nullptr;     ///< [N]; null if there is none
  const void* residual = nullptr;  ///< [R, N]; null if there is none; may be y
  void* y = nullptr;               ///< [R, N]
};
/// At most 2^31 - 1 pixels per image and 2^31 - 1 tiles.
int conv_product(const ConvProduct& call, CUstream_st* stream);

/// Copies weights from [O, I, A] to [O, A, I], or if `back`, for gradients, to [I, A, O].
int conv_arrange(Type type, const void* w, void* arranged, int out, int in, int taps, bool back,
                 CUstream_st* stream);

/// Number of pixels in one sum of conv_weights. It is small enough for f32, even though tensor
/// cores truncate after each addition of 16 pixels. Each of the at most 512 additions then has an
/// error below 1.2e-7 of the sum so far, always of the same sign: in all less than 6.2e-5 of the
/// largest sum.
inline constexpr std::int64_t kConvChunk = 8192;

/// Partial sums for the gradient of the weights, each over a chunk of rows:
/// partial[i, n, tap, c] = the sum over the rows r of chunk first_chunk + i of
/// dy[r, n] * source[pixel of r and tap, c].
struct ConvWeights {
  ConvGather gather;
  Type type = Type::f32;  ///< of source and dy
  int columns = 0;        ///< N
  const void* source = nullptr;
  const void* dy = nullptr;  ///< [R, N]
  std::int64_t first_chunk = 0;
  int chunks = 0;            ///< at most 65,535
  float* partial = nullptr;  ///< [chunks, N, A, C]
};
int conv_weights(const ConvWeights& call, CUstream_st* stream);
/// dw[n, c, tap] += the sum over chunks of partial[chunk, n, tap, c].
int conv_add_weights(const float* partial, int chunks, float* dw, int columns, int channels,
                     int taps, CUstream_st* stream);

/// The most rows of partial sums in conv_bias.
inline constexpr int kConvBiasParts = 256;
/// dbias[n] += the sum over rows of dy[r, n]; `partial` is scratch of [kConvBiasParts, N].
int conv_bias(Type type, const void* dy, std::int64_t rows, int columns, float* partial,
              float* dbias, CUstream_st* stream);

}  // namespace vfm::kernels

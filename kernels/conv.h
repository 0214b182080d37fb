// Convolutions of channels-last images as matrix products whose left side is gathered while it is
// multiplied: the CUDA version of lib/ops/conv/conv2d.h. Forward, the gradient of x, that of the
// weights.
//
// A product's row is a pixel of the result, its column an output channel; what is summed over is
// (tap, channel). Nothing is unfolded in memory: at 128 channels the unfolded pixels, written and
// read once, would take longer than the product itself. bf16 with channels in eights and 16-byte
// alignment runs on tensor cores (conv_tensor.cu), in tiles of 128 pixels by 128 channels, three
// steps of 64 under way; all else on plain arithmetic (conv.cu), which is right but slow. A pixel's
// sum has one order whatever else is computed, and nothing is added with atomics.
//
// Shape letters: R rows, that is pixels of the result; N output channels; C channels of the source;
// A taps of the kernel (its height times its width).
// All return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes that
// are negative or beyond what is said. Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Which pixels of the source a pixel (y, x) of the result sees: at (y * stride - pad + ky, ...),
/// or, `back` the way of gradients, at ((y + pad - ky) / stride, ...) where that is a whole number.
/// Beyond the edges the source is zero.
struct ConvGather {
  std::int64_t images = 0;
  std::int64_t step = 0;  ///< elements from an image of the source to the next; they may overlap
  int height = 0, width = 0, channels = 0;  ///< of the source; C
  int out_height = 0, out_width = 0;        ///< of the result
  int kernel_height = 1, kernel_width = 1;
  int stride_y = 1, stride_x = 1;
  int pad_top = 0, pad_left = 0;
  bool back = false;

  constexpr std::int64_t rows() const { return images * out_height * out_width; }  ///< R
  constexpr int depth() const { return kernel_height * kernel_width * channels; }  ///< A C
};

/// y[r, n] = sum of w[n, tap, c] * source[what r sees by tap, c], + bias[n] + residual[r, n].
struct ConvProduct {
  ConvGather gather;
  Type type = Type::f32;  ///< of source, weights, residual and y
  int columns = 0;        ///< N
  const void* source = nullptr;
  const void* weights = nullptr;   ///< [N, A, C]: conv_arrange makes them
  const float* bias = nullptr;     ///< [N], or null
  const void* residual = nullptr;  ///< [R, N], or null; may be y
  void* y = nullptr;               ///< [R, N]
};
/// At most 2^31 - 1 pixels an image and 2^31 - 1 tiles.
int conv_product(const ConvProduct& call, CUstream_st* stream);

/// From [O, I, A] to [O, A, I], or, `back`, to [I, A, O]: what gradients are multiplied with.
int conv_arrange(Type type, const void* w, void* arranged, int out, int in, int taps, bool back,
                 CUstream_st* stream);

/// Pixels that one sum of conv_weights is over: short enough for f32, also where tensor cores cut
/// off what they add 16 pixels at a time. Of up to 512 additions each is then wrong by less than
/// 1.2e-7 of the sum so far, all to one side: in all by less than 6.2e-5 of the largest.
inline constexpr std::int64_t kConvChunk = 8192;

/// Sums for the gradient of the weights, each over a chunk of rows: partial[i, n, tap, c] = the sum
/// over the rows r of chunk first_chunk + i of dy[r, n] * source[what r sees by tap, c].
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

/// The most rows of sums that conv_bias makes.
inline constexpr int kConvBiasParts = 256;
/// dbias[n] += the sum over rows of dy[r, n]; `partial` is scratch of [kConvBiasParts, N].
int conv_bias(Type type, const void* dy, std::int64_t rows, int columns, float* partial,
              float* dbias, CUstream_st* stream);

}  // namespace vfm::kernels

// The kernels of convolutions, patches, wavelets and changes of size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/conv/conv2d.h"
#include "ops/conv/patchify.h"
#include "ops/kernel.h"
#include "tensor/tensor.h"

namespace vfm::ops {

// The kernels behind conv2d.h; the CPU version uses oneDNN or conv2d_plain.h.

VFM_KERNEL(void, conv2d, const Conv2d& conv, DType dtype, const void* x, const void* w,
           const float* bias, const void* residual, void* y)
// On a GPU the images of x must lie one behind the other.
VFM_KERNEL(void, conv2d_backward_data, const Conv2d& conv, DType dtype, const void* dy,
           const void* w, void* dx)
VFM_KERNEL(void, conv2d_backward_weights, const Conv2d& conv, DType dtype, const void* x,
           const void* dy, float* dw, float* dbias)

/// Floats of scratch of the CPU versions.
std::int64_t conv2d_scratch(const Conv2d& conv, DType dtype, bool bias, bool residual);
std::int64_t conv2d_backward_data_scratch(const Conv2d& conv, DType dtype);
std::int64_t conv2d_backward_weights_scratch(const Conv2d& conv, DType dtype);

/// On a GPU the gradient of a bias is summed in kConvBiasParts parts, and the gradient of the
/// weights in chunks of kConvChunk rows. conv2d_chunks_at_once() returns the number of chunks that
/// fill a GPU.
inline constexpr std::int64_t kConvBiasParts = 256, kConvChunk = 8192;
std::int64_t conv2d_chunks_at_once(const Conv2d& conv);
/// Whether the weights must be copied into another order for the product.
bool conv2d_arranges(const Conv2d& conv, bool back);

// The kernels behind haar.h; f32 throughout.

/// bands [t, h, w, C p^3] = split(pixels), each level multiplied by `scale`. With `start` the first
/// frame counts as p equal frames; with `last_only` too, it is the last of p frames and the others
/// are zero.
VFM_KERNEL(void, haar_split, const Tensor& pixels, const Tensor& bands, int patch, bool start,
           float scale, bool last_only)
/// pixels = merge(bands), the transpose of haar_split. With `start` the first p frames become their
/// sum, or with `last_only` the last of them.
VFM_KERNEL(void, haar_merge, const Tensor& bands, const Tensor& pixels, int patch, bool start,
           float scale, bool last_only)

// The kernels behind patchify.h.

/// The samples of a call and the layout of their tokens.
struct PatchLayout {
  std::vector<PatchGrid> grids;
  int channels = 0;       ///< of the latents
  int zero_channels = 0;  ///< zero channels of a token after those
  std::array<int, 3> patch{};

  std::int64_t token_width() const {
    return std::int64_t{channels + zero_channels} * patch[0] * patch[1] * patch[2];
  }
};

// Tokens hold (c, pt, ph, pw). Latents are f32, tokens f32 or bf16. Backward is the inverse.
VFM_KERNEL(void, patchify_forward, const PatchLayout& layout, const Tensor& latents,
           const Tensor& tokens)
VFM_KERNEL(void, patchify_backward, const PatchLayout& layout, const Tensor& dtokens,
           const Tensor& dlatents)
// Tokens hold (ph, pw, pt, c); f32 throughout.
VFM_KERNEL(void, unpatchify_forward, const PatchLayout& layout, const Tensor& tokens,
           const Tensor& latents)
VFM_KERNEL(void, unpatchify_backward, const PatchLayout& layout, const Tensor& dlatents,
           const Tensor& dtokens)

// The kernels behind resample.h. Of the first four each is the backward pass of another, up to the
// factor.

// y [rows, columns, channels] = scale * sum of 2 x 2 pixels of x. Here and below x and y have
// `type`.
VFM_ISA_KERNEL(void, pool_pixels, DType type, const void* x, void* y, std::int64_t rows,
               std::int64_t columns, std::int64_t channels, float scale)
// y [2 rows, 2 columns, channels] = scale * each pixel of x [rows, columns, channels]
VFM_ISA_KERNEL(void, repeat_pixels, DType type, const void* x, void* y, std::int64_t rows,
               std::int64_t columns, std::int64_t channels, float scale)
// y [frames, size] = scale * (frame 2 t of x + frame 2 t + 1 of x)
VFM_ISA_KERNEL(void, pool_frames, DType type, const void* x, void* y, std::int64_t frames,
               std::int64_t size, float scale)
// y [2 frames, size]: frames 2 t and 2 t + 1 are scale * frame t of x
VFM_ISA_KERNEL(void, repeat_frames, DType type, const void* x, void* y, std::int64_t frames,
               std::int64_t size, float scale)

/// Plain pointers of one call; `fine` has rows x columns patches, `coarse` as many pixels.
struct RegroupArgs {
  DType type = DType::f32;  // of x and y
  std::int64_t rows = 0, columns = 0;
  std::int64_t fine_channels = 0, coarse_channels = 0;
  int space = 1, frames = 1, frame = 0;
  bool add = false;  // pool_patches: to what is in y
  const void* x = nullptr;
  void* y = nullptr;
};

VFM_ISA_KERNEL(void, pool_patches, const RegroupArgs& args)
VFM_ISA_KERNEL(void, repeat_patches, const RegroupArgs& args)

}  // namespace vfm::ops

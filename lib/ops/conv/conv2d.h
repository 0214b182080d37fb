// Two-dimensional convolution of channels-last images on any device, the basis of ops/conv/conv.h.
//
// The CPU uses oneDNN (conv2d_cpu.cc) or, in a build without oneDNN, our own code
// (conv2d_plain.cc). The GPU uses kernels/conv.h or cuDNN (conv2d_cuda.cc). Forward computes image
// by image, so the bits of an image's result do not depend on the number of images. Sums are f32; a
// bf16 result is rounded once, after bias and residual. Thread-safety: any thread; uses threads
// inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::ops {

/// x has `images` images of height x width x in, one every `x_step` elements; images may overlap. y
/// has images of out_height() x out_width() x out, one behind the other. Weights are
/// [out, in, kernel_height, kernel_width]. x, y and weights have the same dtype, f32 or bf16; bias
/// is f32. Images are padded with zeros.
struct Conv2d {
  std::int64_t images = 1, height = 0, width = 0, in = 0, out = 0;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_y = 1, stride_x = 1;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t x_step = 0;

  std::int64_t out_height() const {
    return (height + pad_top + pad_bottom - kernel_height) / stride_y + 1;
  }
  std::int64_t out_width() const {
    return (width + pad_left + pad_right - kernel_width) / stride_x + 1;
  }
  std::int64_t y_step() const { return out_height() * out_width() * out; }
  auto operator<=>(const Conv2d&) const = default;
};

/// y = x * w + bias + residual. `residual` has the layout of y, or is null. All are on `device`.
void conv2d(Device device, const Conv2d& conv, DType dtype, const void* x, const void* w,
            const float* bias, const void* residual, void* y);

/// Computes the gradient of x, in the dtype of dy. Images must not overlap.
void conv2d_backward_data(Device device, const Conv2d& conv, DType dtype, const void* dy,
                          const void* w, void* dx);

/// Adds to the f32 gradients of the weights and of the bias; dbias is null if not wanted. Images
/// must not overlap.
void conv2d_backward_weights(Device device, const Conv2d& conv, DType dtype, const void* x,
                             const void* dy, float* dw, float* dbias);

}  // namespace vfm::ops

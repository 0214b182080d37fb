// Convolution of channels-last images on any device, the basis of ops/conv/conv.h. An image may
// have several frames, over which the kernel then reaches, too.
//
// The CPU uses oneDNN (conv2d_cpu.cc) or, in a build without oneDNN, our own code
// (conv2d_plain.cc). The GPU uses kernels/conv.h or, for images of one frame, cuDNN
// (conv_cuda.cc). Forward computes image by image, so the bits of an image's result do not depend
// on the number of images. Sums are f32; a bf16 result is rounded once, after bias and residual.
// The CPU takes little memory besides: it never unfolds an image. oneDNN copies the weights; our
// own code unfolds 4 MiB of pixels at a time, and its gradient of x takes an f32 copy of an image.
// Thread-safety: any thread; uses threads inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::ops {

/// x has `images` images of frames x height x width x in, one every `x_step` elements; images may
/// overlap. y has images of out_frames() x out_height() x out_width() x out, one behind the other.
/// Weights are [out, in, kernel_frames, kernel_height, kernel_width] unless `weights_last`. x, y
/// and weights have the same dtype, f32 or bf16; bias is f32. Images are padded with zeros.
struct Conv2d {
  std::int64_t images = 1, height = 0, width = 0, in = 0, out = 0;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_y = 1, stride_x = 1;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t x_step = 0;
  std::int64_t frames = 1, kernel_frames = 1, stride_t = 1, pad_front = 0, pad_back = 0;
  /// Weights are [out, kernel_frames, kernel_height, kernel_width, in], as convolving takes them
  /// without much copying. Only forward.
  bool weights_last = false;

  std::int64_t out_frames() const {
    return (frames + pad_front + pad_back - kernel_frames) / stride_t + 1;
  }
  std::int64_t out_height() const {
    return (height + pad_top + pad_bottom - kernel_height) / stride_y + 1;
  }
  std::int64_t out_width() const {
    return (width + pad_left + pad_right - kernel_width) / stride_x + 1;
  }
  std::int64_t taps() const { return kernel_frames * kernel_height * kernel_width; }
  std::int64_t x_size() const { return frames * height * width * in; }  ///< of an image
  std::int64_t y_step() const { return out_frames() * out_height() * out_width() * out; }
  /// Whether an image is more than one frame.
  bool over_frames() const { return frames > 1 || kernel_frames > 1 || out_frames() > 1; }
  auto operator<=>(const Conv2d&) const = default;
};

/// y = x * w + bias + residual. `residual` has the layout of y, or is null. All are on `device`.
void conv2d(Device device, const Conv2d& conv, DType dtype, const void* x, const void* w,
            const float* bias, const void* residual, void* y);

/// Puts weights [out, in, taps] into the order of Conv2d::weights_last, in place, on any device.
void arrange_weights(const Tensor& weights);

/// Computes the gradient of x, in the dtype of dy. Images must not overlap.
void conv2d_backward_data(Device device, const Conv2d& conv, DType dtype, const void* dy,
                          const void* w, void* dx);

/// Adds to the f32 gradients of the weights and of the bias; dbias is null if not wanted. Images
/// must not overlap.
void conv2d_backward_weights(Device device, const Conv2d& conv, DType dtype, const void* x,
                             const void* dy, float* dw, float* dbias);

}  // namespace vfm::ops

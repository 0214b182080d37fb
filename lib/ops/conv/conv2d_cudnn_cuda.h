// Convolutions by cuDNN: the second CUDA body of conv2d.h.
//
// A plan is built once for a ConvShape, and kept. It is of one image, and runs once for each.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv_graph.h"

namespace vfm::ops {

/// Addresses on the GPU, all bf16 but the bias; `x_step` and `y_step` elements from image to image.
/// Of a gradient (shape.back) y is read and x made.
struct ConvCall {
  ConvShape shape;
  std::int64_t images = 1, x_step = 0, y_step = 0;
  void* x = nullptr;
  const void* weights = nullptr;   ///< [out, taps, in]
  const float* bias = nullptr;     ///< or null
  const void* residual = nullptr;  ///< laid out as y, or null
  void* y = nullptr;
};

/// Throws Error if cuDNN has no engine for the shape, or cannot run.
void conv2d_cudnn(const ConvCall& call);

}  // namespace vfm::ops

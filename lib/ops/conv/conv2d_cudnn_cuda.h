// Convolutions with cuDNN: the second CUDA body of conv2d.h.
//
// A plan is built once for a ConvShape and kept. It computes one image and runs once for each
// image.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/conv/conv_graph.h"

namespace vfm::ops {

/// Addresses on the GPU; all data are bf16, only the bias is f32. Images are `x_step` and `y_step`
/// elements apart. If shape.back, y is read and x is written.
struct ConvCall {
  ConvShape shape;
  std::int64_t images = 1, x_step = 0, y_step = 0;
  void* x = nullptr;
  const void* weights = nullptr;   ///< [out, taps, in]
  const float* bias = nullptr;     ///< null if there is none
  const void* residual = nullptr;  ///< in the layout of y; null if there is none
  void* y = nullptr;
};

/// Throws Error if cuDNN has no engine for the shape or fails to run.
void conv2d_cudnn(const ConvCall& call);

}  // namespace vfm::ops

// A convolution of one image as cuDNN gets it (cudnn/tensor_graph.h): the product, then bias and
// residual, summed in f32 and rounded to bf16 once; or the gradient of x. Host logic that needs no
// GPU.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "ops/conv/conv2d.h"
#include "ops/cudnn/tensor_graph.h"

namespace vfm::ops {

/// What a plan is built for. Of `conv` images and x_step do not matter: a plan is for one image, so
/// that its result does not depend on how many come with it.
struct ConvShape {
  Conv2d conv;
  bool bias = false, residual = false;
  bool back = false;  ///< the gradient of x, from that of y
  auto operator<=>(const ConvShape&) const = default;
};

/// The caller's memory, bf16 but for the bias, which is f32; channels last. Weights are
/// [out, taps, in].
enum ConvId : std::int64_t { kConvX = 1, kConvWeights, kConvBias, kConvResidual, kConvY };

/// With `back` y is read and x made.
graph::Graph conv_graph(const ConvShape& shape);

/// Why cuDNN does not run it, whatever the machine, or empty if it can.
std::string why_not_cudnn(const Conv2d& conv, DType dtype);

/// "3x3 from 128 to 256 channels of 90x160, stride 1x1, backward", for messages.
std::string text_of(const ConvShape& shape);

}  // namespace vfm::ops

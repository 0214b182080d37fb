// The graph of a convolution of one image for cuDNN (cudnn/tensor_graph.h): the product, then bias
// and residual, summed in f32 and rounded to bf16 once; or the gradient of x. Host code; needs no
// GPU. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "ops/conv/conv2d.h"
#include "ops/cudnn/tensor_graph.h"

namespace vfm::ops {

/// The shape for which a plan is built. conv.images and conv.x_step are ignored: a plan computes
/// one image, so that its result does not depend on the number of images.
struct ConvShape {
  Conv2d conv;
  bool bias = false, residual = false;
  bool back = false;  ///< true: the graph computes the gradient of x from that of y
  auto operator<=>(const ConvShape&) const = default;
};

/// Ids of tensors in the caller's memory, channels last. The bias is f32, all others are bf16.
/// Weights are [out, taps, in].
enum ConvId : std::int64_t { kConvX = 1, kConvWeights, kConvBias, kConvResidual, kConvY };

/// If shape.back, y is read and x is written.
graph::Graph conv_graph(const ConvShape& shape);

/// Returns why cuDNN cannot compute the convolution on any machine. Empty if it can.
std::string why_not_cudnn(const Conv2d& conv, DType dtype);

/// Returns a text for messages: "3x3 from 128 to 256 channels of 90x160, stride 1x1, backward".
std::string text_of(const ConvShape& shape);

}  // namespace vfm::ops

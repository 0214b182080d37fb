// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv_graph.h"

#include "base/format.h"
#include "ops/determinism.h"

namespace vfm::ops {

using namespace graph;

namespace {

// [images, channels, height, width] of memory where a pixel's channels are beside each other.
Layout channels_last(std::int64_t images, std::int64_t channels, std::int64_t height,
                     std::int64_t width) {
  return {{images, channels, height, width},
          {height * width * channels, 1, width * channels, channels}};
}

}  // namespace

Graph conv_graph(const ConvShape& shape) {
  const Conv2d& c = shape.conv;
  const Layout result = channels_last(1, c.out, c.out_height(), c.out_width());
  Graph graph;
  const Edge x = graph.memory(kConvX, Type::bf16, channels_last(1, c.in, c.height, c.width));
  const Edge w = graph.memory(kConvWeights, Type::bf16,
                              channels_last(c.out, c.in, c.kernel_height, c.kernel_width));
  const Edge y = graph.memory(kConvY, Type::bf16, result);
  Operation product{shape.back ? Op::convolution_back : Op::convolution};
  product.a = shape.back ? y : x;
  product.b = w;
  product.window = {{c.stride_y, c.stride_x}, {c.pad_top, c.pad_left}, {c.pad_bottom, c.pad_right}};
  Edge sum = shape.back ? x : shape.bias || shape.residual ? graph.inner(result) : y;
  product.out = sum;
  graph.add(product);
  const auto add = [&](Edge more, bool last) {
    const Edge out = last ? y : graph.inner(result);
    graph.add({Op::add, sum, more, none, out});
    sum = out;
  };
  if (shape.bias)
    add(graph.memory(kConvBias, Type::f32, channels_last(1, c.out, 1, 1)), !shape.residual);
  if (shape.residual) add(graph.memory(kConvResidual, Type::bf16, result), true);
  return graph;
}

std::string why_not_cudnn(const Conv2d& conv, DType dtype) {
  if (dtype != DType::bf16) return "it is for bf16";
  if (conv.over_frames()) return "it is for images of one frame";
  if (conv.in % 8 != 0 || conv.out % 8 != 0) return "its channels come in eights";
  if (deterministic()) return "--deterministic asks for kernels that give the same bits everywhere";
  return "";
}

std::string text_of(const ConvShape& shape) {
  const Conv2d& c = shape.conv;
  return vfm::format("{}x{} from {} to {} channels of {}x{}, stride {}x{}{}{}", c.kernel_height,
                     c.kernel_width, c.in, c.out, c.height, c.width, c.stride_y, c.stride_x,
                     shape.residual ? ", with a residual" : "", shape.back ? ", backward" : "");
}

}  // namespace vfm::ops

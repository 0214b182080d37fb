// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "kernels/conv.h"
#include "ops/conv/conv2d_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

using kernels::Type;

static_assert(kConvBiasParts == kernels::kConvBiasParts && kConvChunk == kernels::kConvChunk);

int narrow(std::int64_t size) {
  if (size < 0 || size > std::numeric_limits<int>::max())
    fail("no convolution on cuda of {}", size);
  return static_cast<int>(size);
}

Type type_of(DType dtype) {
  return dtype == DType::bf16 ? Type::bf16 : Type::f32;
}

kernels::ConvGather gather_of(const Conv2d& c) {
  kernels::ConvGather g;
  g.images = c.images;
  g.step = c.x_step;
  g.height = narrow(c.height), g.width = narrow(c.width), g.channels = narrow(c.in);
  g.out_height = narrow(c.out_height()), g.out_width = narrow(c.out_width());
  g.kernel_height = narrow(c.kernel_height), g.kernel_width = narrow(c.kernel_width);
  g.stride_y = narrow(c.stride_y), g.stride_x = narrow(c.stride_x);
  g.pad_top = narrow(c.pad_top), g.pad_left = narrow(c.pad_left);
  return g;
}

// The weights as a product takes them.
Tensor arranged(const Conv2d& c, DType dtype, const void* w, bool back) {
  const int taps = narrow(c.kernel_height * c.kernel_width);
  const Tensor given = Tensor::borrow(w, {c.out, taps * c.in}, dtype, nullptr, Device::cuda);
  if (!conv2d_arranges(c, back)) return given;
  const Tensor made(given.shape(), dtype, Device::cuda);
  check_gpu(kernels::conv_arrange(type_of(dtype), w, made.raw(), narrow(c.out), narrow(c.in), taps,
                                  back, compute_stream()),
            "arrange the weights of a convolution");
  return made;
}

}  // namespace

void cuda::conv2d(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                  const void* residual, void* y) {
  const Tensor weights = arranged(conv, dtype, w, false);
  kernels::ConvProduct call;
  call.gather = gather_of(conv);
  call.type = type_of(dtype);
  call.columns = narrow(conv.out);
  call.source = x;
  call.weights = weights.raw();
  call.bias = bias;
  call.residual = residual;
  call.y = y;
  check_gpu(kernels::conv_product(call, compute_stream()), "run a convolution");
}

void cuda::conv2d_backward_data(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                                void* dx) {
  if (conv.images > 1 && conv.x_step != conv.height * conv.width * conv.in)
    fail("no gradient of a convolution of images that are apart");
  const Tensor weights = arranged(conv, dtype, w, true);
  kernels::ConvProduct call;
  kernels::ConvGather& g = call.gather = gather_of(conv);
  std::swap(g.height, g.out_height);
  std::swap(g.width, g.out_width);
  g.channels = narrow(conv.out);
  g.step = conv.y_step();
  g.back = true;
  call.type = type_of(dtype);
  call.columns = narrow(conv.in);
  call.source = dy;
  call.weights = weights.raw();
  call.y = dx;
  check_gpu(kernels::conv_product(call, compute_stream()), "run a convolution backward");
}

void cuda::conv2d_backward_weights(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                   float* dw, float* dbias) {
  const int out = narrow(conv.out), taps = narrow(conv.kernel_height * conv.kernel_width);
  kernels::ConvWeights call;
  call.gather = gather_of(conv);
  const std::int64_t rows = call.gather.rows(), depth = call.gather.depth();
  if (dbias != nullptr) {
    const Tensor partial({kConvBiasParts, out}, DType::f32, Device::cuda);
    check_gpu(kernels::conv_bias(type_of(dtype), dy, rows, out, partial.data<float>(), dbias,
                                 compute_stream()),
              "sum the gradient of a convolution's bias");
  }
  if (dw == nullptr) return;
  const std::int64_t chunks = (rows + kConvChunk - 1) / kConvChunk;
  const std::int64_t at_once = conv2d_chunks_at_once(conv);
  const Tensor partial({at_once, conv.out, depth}, DType::f32, Device::cuda);
  call.type = type_of(dtype);
  call.columns = out;
  call.source = x;
  call.dy = dy;
  call.partial = partial.data<float>();
  for (call.first_chunk = 0; call.first_chunk < chunks; call.first_chunk += at_once) {
    call.chunks = static_cast<int>(std::min(at_once, chunks - call.first_chunk));
    check_gpu(kernels::conv_weights(call, compute_stream()),
              "run a convolution's weights backward");
    check_gpu(kernels::conv_add_weights(call.partial, call.chunks, dw, out, narrow(conv.in), taps,
                                        compute_stream()),
              "add the gradients of a convolution's weights");
  }
}

}  // namespace vfm::ops

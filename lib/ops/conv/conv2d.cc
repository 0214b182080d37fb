// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv2d.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "ops/conv/conv_graph.h"
#include "ops/conv/conv_kernels.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const Conv2d& c, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) fail("no convolution of {}", dtype_name(dtype));
  if (c.images < 0 || c.in < 1 || c.out < 1 || c.out_frames() < 1 || c.out_height() < 1 ||
      c.out_width() < 1)
    fail("a {}x{}x{} convolution does not fit an image of {}x{}x{}x{}", c.kernel_frames,
         c.kernel_height, c.kernel_width, c.frames, c.height, c.width, c.in);
}

void check_backward(const Conv2d& c) {
  if (c.weights_last) fail("no gradient of a convolution with arranged weights");
  if (c.images > 1 && c.x_step < c.x_size())
    fail("no gradient of a convolution of images that overlap");
}

// oneDNN keeps each convolution that it has met: its code, more of it for many channels, and tables
// with a kernel for every number of places that one may be asked for at once. In 2.6 that is up to
// a row, but where it makes few channels of nine places of a picture up to the whole plane: vectors
// of 256, 64, 64, 32 and 16 bytes a place. It is little beside the activations of a tokenizer of
// usual widths.
double conv2d_kept(const Conv2d& c) {
  constexpr std::int64_t kFew = 64;  // channels: more, and a row at a time is convolved
  if (c.kernel_frames > 1) return (std::max(c.in, c.out) <= kFew ? 0.12 : 0.4) * (1 << 20);
  const bool planes = c.kernel_height * c.kernel_width > 3 && c.out <= kFew;
  return 0.4 * (1 << 20) + (planes ? 432.0 * static_cast<double>(c.height * c.width) : 0);
}

bool by_cudnn(const Conv2d& c, DType dtype) {
  return layout_device(Device::meta) == Device::cuda && counts_as_cudnn() &&
         why_not_cudnn(c, dtype).empty();
}

// All three products have the same factors, and read or write the same three arrays. The gradients
// of weights are our own kernels'.
Touching work_of(Device device, const Conv2d& c, DType dtype, bool residual, bool weights = false) {
  if (device != Device::meta) return device;
  const auto pixels =
      static_cast<double>(c.images * c.out_frames() * c.out_height() * c.out_width());
  const auto depth = static_cast<double>(c.in * c.taps());
  const auto out = static_cast<double>(c.out);
  const auto read = static_cast<double>((c.images - 1) * c.x_step + c.x_size());
  const double elements = read + out * depth + pixels * out * (residual ? 2 : 1);
  Work work{0, elements * static_cast<double>(dtype_size(dtype))};
  if (c.taps() > 1 && layout_device(device) == Device::cpu) {
    work.kept = conv2d_kept(c);
    work.kernel = vfm::format("convolution {} {} {} {} {} {} {} {}", c.height, c.width, c.in, c.out,
                              c.kernel_height * 10 + c.stride_y, residual, c.frames,
                              c.kernel_frames * 10 + c.stride_t);
  }
  work.cudnn = !weights && by_cudnn(c, dtype);
  return Touching(device, work).kind(WorkKind::convolutions, dtype).products(pixels, out, depth);
}

double elements_of_weights(const Conv2d& c) {
  return static_cast<double>(c.out * c.in * c.taps());
}

// Bytes that a GPU's version takes besides.
double arranged_bytes(const Conv2d& c, DType dtype, bool back) {
  return conv2d_arranges(c, back) ? elements_of_weights(c) * static_cast<double>(dtype_size(dtype))
                                  : 0;
}
// Where cuDNN runs it: its weights, and once for each shape also what our own kernels take, whose
// result is compared.
double product_bytes(const ConvShape& shape, DType dtype) {
  const Conv2d& c = shape.conv;
  if (!by_cudnn(c, dtype)) return arranged_bytes(c, dtype, shape.back);
  double bytes = arranged_bytes(c, dtype, false);
  if (!first_on_meta("a convolution " + text_of(shape))) return bytes;
  if (shape.back) bytes += arranged_bytes(c, dtype, true);
  return bytes +
         static_cast<double>(dtype_size(dtype) * static_cast<std::size_t>(c.images) *
                             static_cast<std::size_t>(shape.back ? c.x_size() : c.y_step()));
}
double sums_bytes(const Conv2d& c, bool weights, bool bias) {
  const double of_weights =
      weights ? static_cast<double>(conv2d_chunks_at_once(c)) * elements_of_weights(c) : 0;
  const double of_bias = bias ? static_cast<double>(kConvBiasParts * c.out) : 0;
  return sizeof(float) * std::max(of_weights, of_bias);
}

}  // namespace

std::int64_t conv2d_chunks_at_once(const Conv2d& c) {
  constexpr std::int64_t kBlocks = 512, kTile = 128;
  const auto over = [](std::int64_t n, std::int64_t part) { return (n + part - 1) / part; };
  const std::int64_t depth = c.in * c.taps();
  const std::int64_t tiles = over(c.out, kTile) * over(depth, kTile);
  const std::int64_t chunks =
      over(c.images * c.out_frames() * c.out_height() * c.out_width(), kConvChunk);
  return std::clamp<std::int64_t>(kBlocks / tiles, 1, chunks);
}

bool conv2d_arranges(const Conv2d& c, bool back) {
  return back || (c.taps() > 1 && !c.weights_last);
}

void conv2d(Device device, const Conv2d& conv, DType dtype, const void* x, const void* w,
            const float* bias, const void* residual, void* y) {
  check(conv, dtype);
  if (conv.images == 0) return;
  VFM_RUN(work_of(device, conv, dtype, residual != nullptr)
              .cpu_scratch(
                  [&] { return conv2d_scratch(conv, dtype, bias != nullptr, residual != nullptr); })
              .gpu_scratch([&] {
                return product_bytes({conv, bias != nullptr, residual != nullptr}, dtype);
              }),
          conv2d, conv, dtype, x, w, bias, residual, y);
}

void arrange_weights(const Tensor& weights) {
  if (weights.dims() < 2 || weights.device() == Device::meta) return;
  const std::int64_t out = weights.size(0), in = weights.size(1);
  const std::int64_t taps = weights.elements() / std::max<std::int64_t>(1, out * in);
  const auto turned = [&]<class T>(T) {
    const Tensor from = weights.to(Device::cpu);
    const Tensor to(weights.shape(), weights.dtype());
#pragma omp parallel for schedule(static)
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t i = 0; i < in; ++i)
        for (std::int64_t tap = 0; tap < taps; ++tap)
          to.data<T>()[(o * taps + tap) * in + i] = from.data<T>()[(o * in + i) * taps + tap];
    copy(to.to(weights.device()), weights);
  };
  if (weights.dtype() == DType::f32) return turned(float{});
  if (weights.dtype() == DType::bf16) return turned(std::uint16_t{});
  fail("no convolution of {}", dtype_name(weights.dtype()));
}

void conv2d_backward_data(Device device, const Conv2d& conv, DType dtype, const void* dy,
                          const void* w, void* dx) {
  check(conv, dtype);
  check_backward(conv);
  if (conv.images == 0) return;
  VFM_RUN(work_of(device, conv, dtype, false)
              .cpu_scratch([&] { return conv2d_backward_data_scratch(conv, dtype); })
              .gpu_scratch([&] {
                return product_bytes({conv, false, false, true}, dtype);
              }),
          conv2d_backward_data, conv, dtype, dy, w, dx);
}

void conv2d_backward_weights(Device device, const Conv2d& conv, DType dtype, const void* x,
                             const void* dy, float* dw, float* dbias) {
  check(conv, dtype);
  check_backward(conv);
  if (conv.images == 0) return;
  VFM_RUN(work_of(device, conv, dtype, false, true)
              .cpu_scratch([&] { return conv2d_backward_weights_scratch(conv, dtype); })
              .gpu_scratch([&] { return sums_bytes(conv, dw != nullptr, dbias != nullptr); }),
          conv2d_backward_weights, conv, dtype, x, dy, dw, dbias);
}

}  // namespace vfm::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv2d.h"

#include "base/error.h"
#include "ops/conv/conv2d_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const Conv2d& c, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) fail("no convolution of {}", dtype_name(dtype));
  if (c.images < 0 || c.in < 1 || c.out < 1 || c.out_height() < 1 || c.out_width() < 1)
    fail("a {}x{} convolution does not fit an image of {}x{}x{}", c.kernel_height, c.kernel_width,
         c.height, c.width, c.in);
}

void check_apart(const Conv2d& c) {
  if (c.images > 1 && c.x_step < c.height * c.width * c.in)
    fail("no gradient of a convolution of images that overlap");
}

// All three products have the same factors, and read or write the same three arrays.
Touching work_of(Device device, const Conv2d& c, DType dtype, bool residual) {
  if (device != Device::meta) return device;
  const auto pixels = static_cast<double>(c.images * c.out_height() * c.out_width());
  const auto depth = static_cast<double>(c.in * c.kernel_height * c.kernel_width);
  const auto out = static_cast<double>(c.out);
  const auto read = static_cast<double>((c.images - 1) * c.x_step + c.height * c.width * c.in);
  const double elements = read + out * depth + pixels * out * (residual ? 2 : 1);
  return Touching(device, {0, elements * static_cast<double>(dtype_size(dtype))})
      .products(pixels, out, depth);
}

}  // namespace

void conv2d(Device device, const Conv2d& conv, DType dtype, const void* x, const void* w,
            const float* bias, const void* residual, void* y) {
  check(conv, dtype);
  if (conv.images == 0) return;
  VFM_RUN(work_of(device, conv, dtype, residual != nullptr).cpu_scratch([&] {
    return conv2d_scratch(conv, dtype, bias != nullptr, residual != nullptr);
  }),
          conv2d, conv, dtype, x, w, bias, residual, y);
}

void conv2d_backward_data(Device device, const Conv2d& conv, DType dtype, const void* dy,
                          const void* w, void* dx) {
  check(conv, dtype);
  check_apart(conv);
  if (conv.images == 0) return;
  VFM_RUN(work_of(device, conv, dtype, false).cpu_scratch([&] {
    return conv2d_backward_data_scratch(conv, dtype);
  }),
          conv2d_backward_data, conv, dtype, dy, w, dx);
}

void conv2d_backward_weights(Device device, const Conv2d& conv, DType dtype, const void* x,
                             const void* dy, float* dw, float* dbias) {
  check(conv, dtype);
  check_apart(conv);
  if (conv.images == 0) return;
  VFM_RUN(work_of(device, conv, dtype, false).cpu_scratch([&] {
    return conv2d_backward_weights_scratch(conv, dtype);
  }),
          conv2d_backward_weights, conv, dtype, x, dy, dw, dbias);
}

}  // namespace vfm::ops

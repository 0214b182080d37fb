// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv2d.h"

#include "base/error.h"
#include "ops/conv/conv2d_cpu.h"
#include "ops/conv/conv2d_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

void check(Device device, const Conv2d& c, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) fail("no convolution of {}", dtype_name(dtype));
  if (c.images < 0 || c.in < 1 || c.out < 1 || c.out_height() < 1 || c.out_width() < 1)
    fail("a {}x{} convolution does not fit an image of {}x{}x{}", c.kernel_height, c.kernel_width,
         c.height, c.width, c.in);
  if (device != Device::cpu && (device != Device::cuda || !kHaveCuda))
    fail("no convolution on {}", device_name(device));
}

void check_apart(const Conv2d& c) {
  if (c.images > 1 && c.x_step < c.height * c.width * c.in)
    fail("no gradient of a convolution of images that overlap");
}

}  // namespace

void conv2d(Device device, const Conv2d& conv, DType dtype, const void* x, const void* w,
            const float* bias, const void* residual, void* y) {
  check(device, conv, dtype);
  if (conv.images == 0) return;
  if constexpr (kHaveCuda)
    if (device == Device::cuda) return conv2d_cuda(conv, dtype, x, w, bias, residual, y);
  conv2d_cpu(conv, dtype, x, w, bias, residual, y);
}

void conv2d_backward_data(Device device, const Conv2d& conv, DType dtype, const void* dy,
                          const void* w, void* dx) {
  check(device, conv, dtype);
  check_apart(conv);
  if (conv.images == 0) return;
  if constexpr (kHaveCuda)
    if (device == Device::cuda) return conv2d_backward_data_cuda(conv, dtype, dy, w, dx);
  conv2d_backward_data_cpu(conv, dtype, dy, w, dx);
}

void conv2d_backward_weights(Device device, const Conv2d& conv, DType dtype, const void* x,
                             const void* dy, float* dw, float* dbias) {
  check(device, conv, dtype);
  check_apart(conv);
  if (conv.images == 0) return;
  if constexpr (kHaveCuda)
    if (device == Device::cuda) return conv2d_backward_weights_cuda(conv, dtype, x, dy, dw, dbias);
  conv2d_backward_weights_cpu(conv, dtype, x, dy, dw, dbias);
}

}  // namespace vfm::ops

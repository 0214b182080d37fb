// SPDX-License-Identifier: Apache-2.0
#include "kernels/resample.h"
#include "ops/conv/resample_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void pool_pixels(DType type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                 std::int64_t channels, float scale) {
  check_gpu(kernels::pool_pixels(kernel_type(type), x, y, rows, columns, channels, scale,
                                 compute_stream()),
            "halve pixels");
}

void repeat_pixels(DType type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                   std::int64_t channels, float scale) {
  check_gpu(kernels::repeat_pixels(kernel_type(type), x, y, rows, columns, channels, scale,
                                   compute_stream()),
            "repeat pixels");
}

void pool_frames(DType type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                 float scale) {
  check_gpu(kernels::pool_frames(kernel_type(type), x, y, frames, size, scale, compute_stream()),
            "halve frames");
}

void repeat_frames(DType type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                   float scale) {
  check_gpu(kernels::repeat_frames(kernel_type(type), x, y, frames, size, scale, compute_stream()),
            "repeat frames");
}

}  // namespace vfm::ops::cuda

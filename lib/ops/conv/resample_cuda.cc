// The CUDA versions of the kernels of resample_cpu.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/resample.h"
#include "ops/conv/resample_cpu.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {

using kernels::Type;

void pool_pixels(const float* x, float* y, std::int64_t rows, std::int64_t columns,
                 std::int64_t channels, float scale) {
  check_gpu(kernels::pool_pixels(Type::f32, x, y, rows, columns, channels, scale, compute_stream()),
            "halve pixels");
}
void pool_pixels(const std::uint16_t* x, std::uint16_t* y, std::int64_t rows, std::int64_t columns,
                 std::int64_t channels, float scale) {
  check_gpu(
      kernels::pool_pixels(Type::bf16, x, y, rows, columns, channels, scale, compute_stream()),
      "halve pixels");
}

void repeat_pixels(const float* x, float* y, std::int64_t rows, std::int64_t columns,
                   std::int64_t channels, float scale) {
  check_gpu(
      kernels::repeat_pixels(Type::f32, x, y, rows, columns, channels, scale, compute_stream()),
      "repeat pixels");
}
void repeat_pixels(const std::uint16_t* x, std::uint16_t* y, std::int64_t rows,
                   std::int64_t columns, std::int64_t channels, float scale) {
  check_gpu(
      kernels::repeat_pixels(Type::bf16, x, y, rows, columns, channels, scale, compute_stream()),
      "repeat pixels");
}

void pool_frames(const float* x, float* y, std::int64_t frames, std::int64_t size, float scale) {
  check_gpu(kernels::pool_frames(Type::f32, x, y, frames, size, scale, compute_stream()),
            "halve frames");
}
void pool_frames(const std::uint16_t* x, std::uint16_t* y, std::int64_t frames, std::int64_t size,
                 float scale) {
  check_gpu(kernels::pool_frames(Type::bf16, x, y, frames, size, scale, compute_stream()),
            "halve frames");
}

void repeat_frames(const float* x, float* y, std::int64_t frames, std::int64_t size, float scale) {
  check_gpu(kernels::repeat_frames(Type::f32, x, y, frames, size, scale, compute_stream()),
            "repeat frames");
}
void repeat_frames(const std::uint16_t* x, std::uint16_t* y, std::int64_t frames, std::int64_t size,
                   float scale) {
  check_gpu(kernels::repeat_frames(Type::bf16, x, y, frames, size, scale, compute_stream()),
            "repeat frames");
}

}  // namespace vfm::ops::cuda

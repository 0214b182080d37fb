// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "regroup.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;

// The sizes of a call, as numbers that divide fast.
struct Sizes {
  unsigned columns = 0, fine = 0, coarse = 0, space = 1, pixels = 1, group = 1, first = 0;
  unsigned parts = 0;  // blocks of a row
  bool add = false;
  const void* x = nullptr;
  void* y = nullptr;
};

// A thread has a channel of a coarse pixel.
template <class T>
__global__ void __launch_bounds__(kThreads) pool_kernel(const Sizes s) {
  const std::int64_t row = blockIdx.x / s.parts;
  const unsigned i = blockIdx.x % s.parts * kThreads + threadIdx.x;
  if (i >= s.columns * s.coarse) return;
  const unsigned column = i / s.coarse, channel = i % s.coarse, square = s.space * s.space;
  const std::int64_t line = std::int64_t{s.columns} * s.space * s.fine;
  const T* const x =
      static_cast<const T*>(s.x) + row * s.space * line + std::int64_t{column} * s.space * s.fine;
  float sum = 0;
  for (unsigned k = 0; k < s.group; ++k) {
    const unsigned value = channel * s.group + k, inside = value % s.pixels - s.first;
    if (inside >= square) continue;  // of another frame
    sum += static_cast<float>(
        x[inside / s.space * line + inside % s.space * s.fine + value / s.pixels]);
  }
  T* const y = static_cast<T*>(s.y) + row * s.columns * s.coarse + i;
  *y = T(sum / static_cast<float>(s.group) + (s.add ? static_cast<float>(*y) : 0.f));
}

// A thread has a channel of a fine pixel.
template <class T>
__global__ void __launch_bounds__(kThreads) repeat_kernel(const Sizes s) {
  const std::int64_t row = blockIdx.x / s.parts;
  const unsigned i = blockIdx.x % s.parts * kThreads + threadIdx.x;
  if (i >= s.columns * s.space * s.fine) return;
  const unsigned column = i / s.fine, channel = i % s.fine;
  const unsigned inside =
      static_cast<unsigned>(row % s.space) * s.space + column % s.space + s.first;
  const std::int64_t pixel = row / s.space * s.columns + column / s.space;
  static_cast<T*>(s.y)[row * s.columns * s.space * s.fine + i] =
      static_cast<const T*>(s.x)[pixel * s.coarse + (channel * s.pixels + inside) / s.group];
}

using Kernel = void (*)(Sizes);

int run(const Regroup& c, std::int64_t rows, std::int64_t row_size, Kernel f32, Kernel bf16,
        cudaStream_t stream) {
  if (c.rows < 0 || c.columns < 0 || c.fine_channels < 0 || c.coarse_channels < 0 || c.space < 1 ||
      c.space > 256 || c.frames < 1 || c.frames > 256 || c.frame < 0 || c.frame >= c.frames)
    return cudaErrorInvalidValue;
  if (rows == 0 || row_size == 0) return cudaSuccess;
  const std::int64_t pixels = std::int64_t{c.frames} * c.space * c.space;
  const std::int64_t parts = (row_size + kThreads - 1) / kThreads;
  if (c.coarse_channels == 0 || c.fine_channels > 0x3fffffff / pixels ||
      c.fine_channels * pixels % c.coarse_channels != 0 || row_size > 0x3fffffff ||
      rows > 0x7fffffff / parts)
    return cudaErrorInvalidValue;
  Sizes s;
  s.columns = static_cast<unsigned>(c.columns);
  s.fine = static_cast<unsigned>(c.fine_channels);
  s.coarse = static_cast<unsigned>(c.coarse_channels);
  s.space = static_cast<unsigned>(c.space);
  s.pixels = static_cast<unsigned>(pixels);
  s.group = static_cast<unsigned>(c.fine_channels * pixels / c.coarse_channels);
  s.first = static_cast<unsigned>(c.frame) * s.space * s.space;
  s.parts = static_cast<unsigned>(parts);
  s.add = c.add;
  s.x = c.x, s.y = c.y;
  return launch(c.type == Type::bf16 ? bf16 : f32, dim3(static_cast<unsigned>(rows * parts)),
                kThreads, 0, stream, s);
}

}  // namespace

int pool_patches(const Regroup& call, CUstream_st* stream) {
  return run(call, call.rows, call.columns * call.coarse_channels, pool_kernel<float>,
             pool_kernel<Bf16>, stream);
}

int repeat_patches(const Regroup& call, CUstream_st* stream) {
  return run(call, call.rows * call.space, call.columns * call.space * call.fine_channels,
             repeat_kernel<float>, repeat_kernel<Bf16>, stream);
}

}  // namespace vfm::kernels

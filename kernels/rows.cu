// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>

#include "common/launch.cuh"
#include "rows.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kMostParts = 65535;  // of a grid's second axis

// One block a row and kThreads words of it; `words` of T make a row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const T* x, const std::int32_t* numbers, T* y, const std::int64_t words) {
  const std::int64_t row = blockIdx.x, from = numbers[row];
  const std::int64_t step = std::int64_t{gridDim.y} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.y} * kThreads + threadIdx.x; i < words; i += step)
    y[row * words + i] = from < 0 ? T{} : x[from * words + i];
}

__global__ void __launch_bounds__(kThreads) add_kernel(const RowSums c) {
  const std::int64_t at = blockIdx.x, step = std::int64_t{gridDim.y} * kThreads;
  const int begin = c.begin[at], end = c.begin[at + 1];
  float* const to = c.to + c.row[at] * c.width;
  for (std::int64_t i = std::int64_t{blockIdx.y} * kThreads + threadIdx.x; i < c.width; i += step) {
    float sum = to[i];
#pragma unroll 4
    for (int k = begin; k < end; ++k)
      sum += c.x[c.takers[k] * c.width + i];
    to[i] = sum;
  }
}

dim3 grid_of(std::int64_t rows, std::int64_t words) {
  const std::int64_t parts = (words + kThreads - 1) / kThreads;
  return {static_cast<unsigned>(rows), static_cast<unsigned>(std::min(parts, kMostParts))};
}

template <class T>
int gather(const void* x, const std::int32_t* numbers, void* y, std::int64_t rows,
           std::int64_t bytes, cudaStream_t stream) {
  const std::int64_t words = bytes / static_cast<std::int64_t>(sizeof(T));
  return launch(gather_kernel<T>, grid_of(rows, words), kThreads, 0, stream,
                static_cast<const T*>(x), numbers, static_cast<T*>(y), words);
}

}  // namespace

int gather_rows(const void* x, const std::int32_t* numbers, void* y, std::int64_t rows,
                std::int64_t bytes, CUstream_st* stream) {
  if (rows < 0 || rows > 0x7fffffff || bytes < 0 || bytes % 2 != 0) return cudaErrorInvalidValue;
  return aligned_to_16(x, y) && bytes % 16 == 0
             ? gather<uint4>(x, numbers, y, rows, bytes, stream)
             : gather<std::uint16_t>(x, numbers, y, rows, bytes, stream);
}

int add_rows(const RowSums& call, CUstream_st* stream) {
  if (call.rows < 0 || call.rows > 0x7fffffff || call.width < 0) return cudaErrorInvalidValue;
  return launch(add_kernel, grid_of(call.rows, call.width), kThreads, 0, stream, call);
}

}  // namespace vfm::kernels

// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "resample.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;

// Rows of the small side: pixels of `span` elements. On the large side a row is two lines, in which
// a pixel is `copies` / 2 neighbours: 4 copies where columns are doubled too, else 2.
struct Fold {
  const void* x = nullptr;
  void* y = nullptr;
  unsigned columns = 0, span = 0;
  unsigned parts = 0;  // blocks of a row
  float scale = 0;
};

// 16 bytes (or what is left of a pixel) of the small side.
template <class T, bool kVector, int kCopies, bool kPool>
__global__ void __launch_bounds__(kThreads) fold_kernel(const Fold f) {
  const unsigned packs = (f.span + kPack<T> - 1) / kPack<T>;
  const std::int64_t row = blockIdx.x / f.parts;
  const unsigned i = blockIdx.x % f.parts * kThreads + threadIdx.x;
  if (i >= f.columns * packs) return;
  const unsigned column = i / packs, first = i % packs * kPack<T>;
  const int count = static_cast<int>(min(f.span - first, static_cast<unsigned>(kPack<T>)));
  const std::int64_t line = std::int64_t{f.columns} * f.span * (kCopies / 2);
  const std::int64_t at = (row * f.columns + column) * f.span + first;
  const std::int64_t large = 2 * row * line + std::int64_t{column} * f.span * (kCopies / 2) + first;
  const std::int64_t places[4] = {large, large + line, large + f.span, large + line + f.span};
  const T* const x = static_cast<const T*>(f.x);
  T* const y = static_cast<T*>(f.y);
  float sum[kPack<T>] = {}, v[kPack<T>];
  if constexpr (kPool) {
#pragma unroll
    for (int copy = 0; copy < kCopies; ++copy) {
      unpack(load_pack<T, kVector>(x + places[copy], count), v);
#pragma unroll
      for (int k = 0; k < kPack<T>; ++k)
        sum[k] += v[k];
    }
  } else {
    unpack(load_pack<T, kVector>(x + at, count), sum);
  }
#pragma unroll
  for (int k = 0; k < kPack<T>; ++k)
    sum[k] *= f.scale;
  if constexpr (kPool) {
    store_pack<T, kVector>(y + at, pack(sum), count);
  } else {
#pragma unroll
    for (int copy = 0; copy < kCopies; ++copy)
      store_pack<T, kVector>(y + places[copy], pack(sum), count);
  }
}

template <class T, int kCopies, bool kPool>
int fold(Fold f, std::int64_t rows, std::int64_t columns, std::int64_t span, cudaStream_t stream) {
  if (rows < 0 || columns < 0 || span < 0 || (columns > 0 && span > 0x7fffffff / columns))
    return cudaErrorInvalidValue;
  if (rows == 0 || columns == 0 || span == 0) return cudaSuccess;
  const std::int64_t packs = columns * ((span + kPack<T> - 1) / kPack<T>);
  const std::int64_t parts = (packs + kThreads - 1) / kThreads;
  if (rows > 0x7fffffff / parts) return cudaErrorInvalidValue;
  f.columns = static_cast<unsigned>(columns), f.span = static_cast<unsigned>(span);
  f.parts = static_cast<unsigned>(parts);
  const bool vector = aligned_to_16(f.x, f.y) && span % kPack<T> == 0;
  const auto kernel =
      vector ? fold_kernel<T, true, kCopies, kPool> : fold_kernel<T, false, kCopies, kPool>;
  return launch(kernel, dim3(static_cast<unsigned>(rows * parts)), kThreads, 0, stream, f);
}

template <int kCopies, bool kPool>
int fold_as(Type type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
            std::int64_t span, float scale, cudaStream_t stream) {
  Fold f;
  f.x = x, f.y = y, f.scale = scale;
  return type == Type::bf16 ? fold<Bf16, kCopies, kPool>(f, rows, columns, span, stream)
                            : fold<float, kCopies, kPool>(f, rows, columns, span, stream);
}

}  // namespace

int pool_pixels(Type type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                std::int64_t channels, float scale, CUstream_st* stream) {
  return fold_as<4, true>(type, x, y, rows, columns, channels, scale, stream);
}

int repeat_pixels(Type type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                  std::int64_t channels, float scale, CUstream_st* stream) {
  return fold_as<4, false>(type, x, y, rows, columns, channels, scale, stream);
}

int pool_frames(Type type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                float scale, CUstream_st* stream) {
  return fold_as<2, true>(type, x, y, frames, 1, size, scale, stream);
}

int repeat_frames(Type type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                  float scale, CUstream_st* stream) {
  return fold_as<2, false>(type, x, y, frames, 1, size, scale, stream);
}

}  // namespace vfm::kernels

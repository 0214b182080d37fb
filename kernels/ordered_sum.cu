// A pack of 16 bytes a thread, of each part after the other: all is memory traffic.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "ordered_sum.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostElements = std::int64_t{1} << 38;

template <class T>
struct Parts {
  const T *own, *others;
  std::int64_t stride;
  int place, count;

  __device__ __forceinline__ const T* at(int part) const {
    return part == place ? own : others + (part - (part > place)) * stride;
  }
};

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads)
    ordered_sum_kernel(const Parts<T> parts, std::int64_t n, T* sum) {
  constexpr int kCount = kPack<T>;
  const std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (i >= n) return;
  const int count = static_cast<int>(std::min<std::int64_t>(kCount, n - i));
  // The first is taken as it is: 0 + -0 would be 0.
  float total[kCount], value[kCount];
  const auto load = [&](int part, float(&to)[kCount]) {
    const T* const from = parts.at(part) + i;
    unpack(count == kCount ? load_pack<T, kVector>(from, kCount) : load_pack<T, false>(from, count),
           to);
  };
  load(0, total);
  for (int part = 1; part < parts.count; ++part) {
    load(part, value);
#pragma unroll
    for (int k = 0; k < kCount; ++k)
      total[k] += value[k];
  }
  const uint4 words = pack(total);
  if (count == kCount)
    store_pack<T, kVector>(sum + i, words, kCount);
  else
    store_pack<T, false>(sum + i, words, count);
}

template <class T>
int sum_parts(const Parts<T>& parts, T* sum, std::int64_t n, cudaStream_t stream) {
  const bool vector = aligned_to_16(parts.own, parts.others, sum) && parts.stride % kPack<T> == 0;
  const std::int64_t step = std::int64_t{kThreads} * kPack<T>;
  const dim3 blocks(static_cast<unsigned>((n + step - 1) / step));
  const auto kernel = vector ? ordered_sum_kernel<T, true> : ordered_sum_kernel<T, false>;
  return launch(kernel, blocks, kThreads, 0, stream, parts, n, sum);
}

}  // namespace

int ordered_sum(Type type, const void* own, int place, const void* others, std::int64_t stride,
                int parts, void* sum, std::int64_t n, CUstream_st* stream) {
  if (n < 0 || n > kMostElements || parts < 1 || place < 0 || place >= parts || stride < 0)
    return cudaErrorInvalidValue;
  const auto add_up = [&]<class T>(T* to) {
    const Parts<T> all{static_cast<const T*>(own), static_cast<const T*>(others), stride, place,
                       parts};
    return sum_parts(all, to, n, stream);
  };
  return type == Type::f32 ? add_up(static_cast<float*>(sum))
                           : add_up(static_cast<__nv_bfloat16*>(sum));
}

}  // namespace vfm::kernels

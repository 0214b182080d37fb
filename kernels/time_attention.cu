// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "common/reduce.cuh"
#include "time_attention.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256, kWarps = kThreads / 32;

// A vector of up to 32 kElements channels, spread over a warp: pack i of a lane is the vector's
// pack number lane + 32 i.
template <int kElements>
struct Spread {
  float v[kElements];
};

template <class T, bool kVector, int kElements>
__device__ __forceinline__ Spread<kElements> load(const T* from, int channels) {
  constexpr int kSize = kPack<T>;
  Spread<kElements> to;
#pragma unroll
  for (int i = 0; i < kElements / kSize; ++i) {
    const int first = (static_cast<int>(threadIdx.x % 32) + 32 * i) * kSize;
    float pack[kSize];
    unpack(load_pack<T, kVector>(from + first, min(channels - first, kSize)), pack);
#pragma unroll
    for (int k = 0; k < kSize; ++k)
      to.v[i * kSize + k] = pack[k];
  }
  return to;
}

template <class T, bool kVector, int kElements>
__device__ __forceinline__ void store(T* to, int channels, const Spread<kElements>& from,
                                      float factor) {
  constexpr int kSize = kPack<T>;
#pragma unroll
  for (int i = 0; i < kElements / kSize; ++i) {
    const int first = (static_cast<int>(threadIdx.x % 32) + 32 * i) * kSize;
    float v[kSize];
#pragma unroll
    for (int k = 0; k < kSize; ++k)
      v[k] = factor * from.v[i * kSize + k];
    store_pack<T, kVector>(to + first, pack(v), min(channels - first, kSize));
  }
}

template <int kElements>
__device__ __forceinline__ float dot(const Spread<kElements>& a, const Spread<kElements>& b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kElements; ++i)
    sum += a.v[i] * b.v[i];
  return warp_sum(sum);
}

template <int kElements>
__device__ __forceinline__ void add(Spread<kElements>& to, float factor,
                                    const Spread<kElements>& from) {
#pragma unroll
  for (int i = 0; i < kElements; ++i)
    to.v[i] += factor * from.v[i];
}

// The pixel and the frame of this warp: warps of a pixel are neighbours, so that what they all read
// comes from the cache.
struct Place {
  std::int64_t pixel, frame;
};
__device__ __forceinline__ Place place_of(const TimeAttention& c) {
  const std::int64_t warp = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  return {warp / c.queries, warp % c.queries};
}

template <class T, bool kVector, int kElements>
__global__ void __launch_bounds__(kThreads) forward_kernel(const TimeAttention c) {
  const Place place = place_of(c);
  if (place.pixel >= c.pixels) return;
  const auto at = [&](const void* frames, std::int64_t frame) {
    return static_cast<const T*>(frames) + (frame * c.pixels + place.pixel) * c.channels;
  };
  const auto q = load<T, kVector, kElements>(at(c.q, place.frame), c.channels);
  const std::int64_t seen = c.frames - c.queries + place.frame + 1;
  float top = -INFINITY, sum = 0;
  Spread<kElements> out = {};
  for (std::int64_t j = 0; j < seen; ++j) {
    const auto k = load<T, kVector, kElements>(at(c.keys[j], 0), c.channels);
    const auto v = load<T, kVector, kElements>(at(c.values[j], 0), c.channels);
    const float score = c.scale * dot(q, k);
    if (score > top) {
      const float by = expf(top - score);
      sum *= by;
#pragma unroll
      for (int i = 0; i < kElements; ++i)
        out.v[i] *= by;
      top = score;
    }
    const float p = expf(score - top);
    sum += p;
    add(out, p, v);
  }
  T* const to = static_cast<T*>(c.out) + (place.frame * c.pixels + place.pixel) * c.channels;
  store<T, kVector>(to, c.channels, out, 1.f / sum);
}

// p and ds of a query, by which dq is made; the rest is for the keys' kernel.
template <class T, bool kVector, int kElements>
__global__ void __launch_bounds__(kThreads) queries_kernel(const TimeAttention c) {
  const Place place = place_of(c);
  if (place.pixel >= c.some_pixels) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t pixel = c.first_pixel + place.pixel, t = place.frame;
  const auto at = [&](const void* frames, std::int64_t frame) {
    return static_cast<const T*>(frames) + (frame * c.pixels + pixel) * c.channels;
  };
  float* const p = c.p + (place.pixel * c.queries + t) * c.queries;
  float* const ds = c.ds + (place.pixel * c.queries + t) * c.queries;
  const auto q = load<T, kVector, kElements>(at(c.q, t), c.channels);
  const auto dout = load<T, kVector, kElements>(at(c.dout, t), c.channels);
  float top = -INFINITY;
  for (std::int64_t j = 0; j <= t; ++j) {
    const float score = c.scale * dot(q, load<T, kVector, kElements>(at(c.keys[j], 0), c.channels));
    const float dp = dot(dout, load<T, kVector, kElements>(at(c.values[j], 0), c.channels));
    top = fmaxf(top, score);
    if (lane == 0) p[j] = score, ds[j] = dp;
  }
  __syncwarp();
  float sum = 0, mean = 0;
  for (std::int64_t j = lane; j <= t; j += 32) {
    p[j] = expf(p[j] - top);
    sum += p[j];
    mean += p[j] * ds[j];
  }
  const float inverse = 1.f / warp_sum(sum);
  mean = warp_sum(mean) * inverse;
  for (std::int64_t j = lane; j <= t; j += 32) {
    p[j] *= inverse;
    ds[j] = c.scale * p[j] * (ds[j] - mean);
  }
  __syncwarp();
  Spread<kElements> dq = {};
  for (std::int64_t j = 0; j <= t; ++j)
    add(dq, ds[j], load<T, kVector, kElements>(at(c.keys[j], 0), c.channels));
  store<T, kVector>(const_cast<T*>(at(c.dq, t)), c.channels, dq, 1.f);
}

template <class T, bool kVector, int kElements>
__global__ void __launch_bounds__(kThreads) keys_kernel(const TimeAttention c) {
  const Place place = place_of(c);
  if (place.pixel >= c.some_pixels) return;
  const std::int64_t pixel = c.first_pixel + place.pixel, j = place.frame;
  const auto at = [&](const void* frames, std::int64_t frame) {
    return static_cast<const T*>(frames) + (frame * c.pixels + pixel) * c.channels;
  };
  Spread<kElements> dk = {}, dv = {};
  for (std::int64_t t = j; t < c.queries; ++t) {
    const std::int64_t place_p = (place.pixel * c.queries + t) * c.queries + j;
    add(dk, c.ds[place_p], load<T, kVector, kElements>(at(c.q, t), c.channels));
    add(dv, c.p[place_p], load<T, kVector, kElements>(at(c.dout, t), c.channels));
  }
  store<T, kVector>(const_cast<T*>(at(c.dk, j)), c.channels, dk, 1.f);
  store<T, kVector>(const_cast<T*>(at(c.dv, j)), c.channels, dv, 1.f);
}

bool refused(const TimeAttention& c) {
  return c.queries < 0 || c.frames < c.queries || c.pixels < 0 || c.channels < 0 ||
         c.channels > kTimeAttentionChannels || c.some_pixels < 0 || c.first_pixel < 0 ||
         (c.queries > 0 && c.pixels > 0x7fffffff / c.queries);
}

dim3 blocks_of(std::int64_t warps) {
  return dim3(static_cast<unsigned>((warps + kWarps - 1) / kWarps));
}

// body.operator()<T, kVector, kElements>(): up to 256 channels a lane has 8, above them 32.
template <class T, class Body>
int choose(const TimeAttention& c, Body body) {
  if (c.channels <= 256)
    return c.vector ? body.template operator()<T, true, 8>()
                    : body.template operator()<T, false, 8>();
  return c.vector ? body.template operator()<T, true, 32>()
                  : body.template operator()<T, false, 32>();
}
template <class Body>
int choose(const TimeAttention& c, Body body) {
  return c.type == Type::bf16 ? choose<Bf16>(c, body) : choose<float>(c, body);
}

}  // namespace

int time_attention_forward(const TimeAttention& call, CUstream_st* stream) {
  if (refused(call)) return cudaErrorInvalidValue;
  return choose(call, [&]<class T, bool kVector, int kElements>() {
    return launch(forward_kernel<T, kVector, kElements>, blocks_of(call.pixels * call.queries),
                  kThreads, 0, stream, call);
  });
}

int time_attention_backward(const TimeAttention& call, CUstream_st* stream) {
  if (refused(call) || call.frames != call.queries) return cudaErrorInvalidValue;
  return choose(call, [&]<class T, bool kVector, int kElements>() {
    const dim3 blocks = blocks_of(call.some_pixels * call.queries);
    const cudaError_t status =
        launch(queries_kernel<T, kVector, kElements>, blocks, kThreads, 0, stream, call);
    if (status != cudaSuccess) return status;
    return launch(keys_kernel<T, kVector, kElements>, blocks, kThreads, 0, stream, call);
  });
}

}  // namespace vfm::kernels

// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cmath>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "optimizer.h"

namespace vfm::kernels {
namespace {

// Registers of eight elements of every array leave room for few threads; small blocks fill it best.
constexpr int kAdamwThreads = 128, kSquaresThreads = 256, kReduceThreads = 1024;

// The arrays of a slot are known only by pointers that lie in memory: without a word the compiler
// would use instructions for memory of any kind, which look first what kind it is.
template <class T>
__device__ __forceinline__ T* global(T* p) {
  __builtin_assume(__isGlobal(p));
  return p;
}

// N elements of an array, one or eight: 16 bytes of bf16.
template <int N>
struct Values {
  float v[N];
};

template <int N>
__device__ __forceinline__ Values<N> load(const float* p) {
  if constexpr (N == 1) {
    return {{*global(p)}};
  } else {
    const float4 a = load4(global(p)), b = load4(global(p) + 4);
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  }
}

template <int N>
__device__ __forceinline__ Values<N> load(const __nv_bfloat16* p) {
  if constexpr (N == 1) {
    return {{__bfloat162float(*global(p))}};
  } else {
    const uint4 w = *reinterpret_cast<const uint4*>(global(p));
    return {{__uint_as_float(w.x << 16), __uint_as_float(w.x & 0xffff0000u),
             __uint_as_float(w.y << 16), __uint_as_float(w.y & 0xffff0000u),
             __uint_as_float(w.z << 16), __uint_as_float(w.z & 0xffff0000u),
             __uint_as_float(w.w << 16), __uint_as_float(w.w & 0xffff0000u)}};
  }
}

__device__ __forceinline__ void store(float* p, const Values<1>& r) {
  *global(p) = r.v[0];
}
__device__ __forceinline__ void store(float* p, const Values<8>& r) {
  store4(global(p), {r.v[0], r.v[1], r.v[2], r.v[3]});
  store4(global(p) + 4, {r.v[4], r.v[5], r.v[6], r.v[7]});
}
__device__ __forceinline__ void store(__nv_bfloat16* p, const Values<1>& r) {
  *global(p) = __float2bfloat16(r.v[0]);
}
__device__ __forceinline__ unsigned rounded_pair(float low, float high) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&two);
}
__device__ __forceinline__ void store(__nv_bfloat16* p, const Values<8>& r) {
  *reinterpret_cast<uint4*>(global(p)) = {
      rounded_pair(r.v[0], r.v[1]), rounded_pair(r.v[2], r.v[3]), rounded_pair(r.v[4], r.v[5]),
      rounded_pair(r.v[6], r.v[7])};
}

// The low half of a word is a signed number.
__device__ __forceinline__ float joined(unsigned high, unsigned low) {
  return __uint_as_float((high << 16) + static_cast<unsigned>(static_cast<std::int16_t>(low)));
}
// The bits of a weight, with which the sum below cannot run over: a NaN is the plain one.
__device__ __forceinline__ unsigned plain(float weight) {
  const unsigned bits = __float_as_uint(weight);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits;
}
__device__ __forceinline__ unsigned high_of(float weight) {
  return (plain(weight) + 0x8000u) >> 16;
}
__device__ __forceinline__ unsigned high_pair(float a, float b) {
  return high_of(a) | ((plain(b) + 0x8000u) & 0xffff0000u);
}
__device__ __forceinline__ unsigned low_pair(float a, float b) {
  return (plain(a) & 0xffffu) | plain(b) << 16;
}

template <bool kSplit, int N>
__device__ __forceinline__ Values<N> load_weights(const OptimizerSlot& s, std::int64_t at) {
  if constexpr (!kSplit) {
    return load<N>(s.value + at);
  } else if constexpr (N == 1) {
    return {{joined(global(s.high)[at], global(s.low)[at])}};
  } else {
    const uint4 h = *reinterpret_cast<const uint4*>(global(s.high) + at);
    const uint4 l = *reinterpret_cast<const uint4*>(global(s.low) + at);
    return {{joined(h.x, l.x), joined(h.x >> 16, l.x >> 16), joined(h.y, l.y),
             joined(h.y >> 16, l.y >> 16), joined(h.z, l.z), joined(h.z >> 16, l.z >> 16),
             joined(h.w, l.w), joined(h.w >> 16, l.w >> 16)}};
  }
}

template <bool kSplit, int N>
__device__ __forceinline__ void store_weights(const OptimizerSlot& s, std::int64_t at,
                                              const Values<N>& r) {
  const float* v = r.v;
  if constexpr (!kSplit) {
    store(s.value + at, r);
  } else if constexpr (N == 1) {
    global(s.high)[at] = static_cast<std::uint16_t>(high_of(v[0]));
    global(s.low)[at] = static_cast<std::uint16_t>(plain(v[0]));
  } else {
    *reinterpret_cast<uint4*>(global(s.high) + at) = {high_pair(v[0], v[1]), high_pair(v[2], v[3]),
                                                      high_pair(v[4], v[5]), high_pair(v[6], v[7])};
    *reinterpret_cast<uint4*>(global(s.low) + at) = {low_pair(v[0], v[1]), low_pair(v[2], v[3]),
                                                     low_pair(v[4], v[5]), low_pair(v[6], v[7])};
  }
}

// What is the same for all elements of a slot.
struct Factors {
  float beta1, beta2, rate, inverse2, epsilon, ema_decay;
  float learning_rate, scale;  // keep is 1 - learning rate * decay of the slot
  const float* device_scale;
};

// The fused operations are written out: the compiler would choose them for each form of a slot
// anew, and the forms would differ by roundings.
template <bool kSplit, int N, class M>
__device__ __forceinline__ void update_some(const OptimizerSlot& s, const Factors& f, float keep,
                                            std::int64_t at) {
  M* const first = static_cast<M*>(s.first_moment) + at;
  M* const second = static_cast<M*>(s.second_moment) + at;
  const Values<N> gradient = load<N>(s.gradient + at);
  Values<N> m = load<N>(first), v = load<N>(second), w = load_weights<kSplit, N>(s, at);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float g = gradient.v[i] * f.scale;
    m.v[i] = fmaf(f.beta1, m.v[i], (1.f - f.beta1) * g);
    v.v[i] = fmaf(f.beta2, v.v[i], (1.f - f.beta2) * g * g);
    const float root = sqrtf(v.v[i] * f.inverse2);
    w.v[i] = fmaf(w.v[i], keep, -(f.rate * m.v[i] / (root + f.epsilon)));
  }
  store(first, m);
  store(second, v);
  store_weights<kSplit, N>(s, at, w);
  if (s.ema == nullptr) return;
  Values<N> average = load<N>(s.ema + at);
#pragma unroll
  for (int i = 0; i < N; ++i)
    average.v[i] = fmaf(f.ema_decay, average.v[i], (1.f - f.ema_decay) * w.v[i]);
  store(s.ema + at, average);
}

// Whether eight elements may be read at once: parts of a stacked matrix may begin anywhere.
__device__ __forceinline__ bool in_eights(const OptimizerSlot& s) {
  return aligned_to_16(s.value, s.high, s.low, s.gradient, s.first_moment, s.second_moment, s.ema);
}

template <bool kSplit, class M>
__device__ __forceinline__ void update(const OptimizerSlot& s, const Factors& f, std::int64_t begin,
                                       int count) {
  const float keep = 1.f - f.learning_rate * s.weight_decay;
  const int eights = in_eights(s) ? count / 8 : 0, thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int i = thread; i < eights; i += kAdamwThreads)
    update_some<kSplit, 8, M>(s, f, keep, begin + i * 8);
#pragma unroll 1
  for (int i = eights * 8 + thread; i < count; i += kAdamwThreads)
    update_some<kSplit, 1, M>(s, f, keep, begin + i);
}

template <bool kSplit>
__device__ __forceinline__ void update(const OptimizerSlot& s, const Factors& f, std::int64_t begin,
                                       int count) {
  s.moment_type == Type::bf16 ? update<kSplit, __nv_bfloat16>(s, f, begin, count)
                              : update<kSplit, float>(s, f, begin, count);
}

__device__ __forceinline__ int chunk_size(std::int64_t count, std::int64_t begin) {
  const std::int64_t left = count - begin;
  return static_cast<int>(left < kOptimizerChunk ? left : kOptimizerChunk);
}

// One block a chunk.
__global__ void __launch_bounds__(kAdamwThreads, 5)
    adamw_kernel(const OptimizerSlots all, Factors f) {
  if (f.device_scale) {
    const float scale = *f.device_scale;
    if (!std::isfinite(scale)) return;
    f.scale *= scale;
  }
  const OptimizerChunk chunk = all.chunks[blockIdx.x];
  const OptimizerSlot slot = all.slots[chunk.slot];
  const std::int64_t begin = chunk.part * kOptimizerChunk;
  const int count = chunk_size(slot.count, begin);
  slot.value ? update<false>(slot, f, begin, count) : update<true>(slot, f, begin, count);
}

__device__ __forceinline__ double chunk_squares(const float* from, int count) {
  double sum = 0;
  const int eights = aligned_to_16(from) ? count / 8 : 0, thread = static_cast<int>(threadIdx.x);
#pragma unroll 4
  for (int i = thread; i < eights; i += kSquaresThreads) {
    const Values<8> r = load<8>(from + i * 8);
#pragma unroll
    for (int j = 0; j < 8; ++j)
      sum += static_cast<double>(r.v[j]) * r.v[j];
  }
#pragma unroll 1
  for (int i = eights * 8 + thread; i < count; i += kSquaresThreads) {
    const double one = load<1>(from + i).v[0];
    sum += one * one;
  }
  return sum;
}

__global__ void __launch_bounds__(kSquaresThreads)
    squares_kernel(const OptimizerSlots all, double* partial) {
  double sum = 0;
  for (std::int64_t i = blockIdx.x; i < all.chunk_count; i += gridDim.x) {
    const OptimizerChunk chunk = all.chunks[i];
    const OptimizerSlot& slot = all.slots[chunk.slot];
    const std::int64_t begin = chunk.part * kOptimizerChunk;
    const int count = chunk_size(slot.count, begin);
    sum += chunk_squares(slot.gradient + begin, count);
  }
  __shared__ double shared[kSquaresThreads / 32];
  sum = block_sum<kSquaresThreads>(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kReduceThreads)
    reduce_kernel(const double* partial, const int count, double* sum) {
  static_assert(kGradientPartials == kReduceThreads);
  const int i = static_cast<int>(threadIdx.x);
  __shared__ double shared[kReduceThreads / 32];
  const double total = block_sum<kReduceThreads>(i < count ? partial[i] : 0.0, shared);
  if (i == 0) *sum = total;
}

__global__ void clip_kernel(const ClipScale c) {
  const double norm = c.factor * sqrt(*c.sum);
  if (c.norm) *c.norm = norm;
  double scale = c.most > 0 && norm > c.most ? c.factor * (c.most / norm) : c.factor;
  if (!std::isfinite(norm)) scale = norm - norm;  // NaN
  *c.scale = static_cast<float>(scale);
}

__global__ void split_kernel(const float* weights, std::uint16_t* high, std::uint16_t* low,
                             std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  high[i] = static_cast<std::uint16_t>(high_of(weights[i]));
  low[i] = static_cast<std::uint16_t>(plain(weights[i]));
}

__global__ void join_kernel(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                            std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) weights[i] = joined(high[i], low[i]);
}

constexpr int kSplitThreads = 256;

dim3 split_blocks(std::int64_t count) {
  return dim3(static_cast<unsigned>((count + kSplitThreads - 1) / kSplitThreads));
}

}  // namespace

int adamw(const AdamwCall& call, CUstream_st* stream) {
  if (call.all.chunk_count == 0) return cudaSuccess;
  if (call.all.chunk_count < 0 || call.all.chunk_count > 0x7fffffff || call.step < 1)
    return cudaErrorInvalidValue;
  const double step = static_cast<double>(call.step);
  const auto correction1 = static_cast<float>(1 - std::pow(double{call.beta1}, step));
  const auto correction2 = static_cast<float>(1 - std::pow(double{call.beta2}, step));
  const Factors factors = {
      call.beta1,         call.beta2,          call.learning_rate / correction1,
      1.f / correction2,  call.epsilon,        call.ema_decay,
      call.learning_rate, call.gradient_scale, call.device_scale};
  return launch(adamw_kernel, dim3(static_cast<unsigned>(call.all.chunk_count)), kAdamwThreads, 0,
                stream, call.all, factors);
}

int gradient_squares(const OptimizerSlots& all, double* partial, double* sum, CUstream_st* stream) {
  if (all.chunk_count < 0) return cudaErrorInvalidValue;
  const int blocks = static_cast<int>(
      all.chunk_count < kGradientPartials ? all.chunk_count : std::int64_t{kGradientPartials});
  const int status = launch(squares_kernel, dim3(static_cast<unsigned>(blocks)), kSquaresThreads, 0,
                            stream, all, partial);
  if (status != cudaSuccess) return status;
  return launch(reduce_kernel, dim3(1), kReduceThreads, 0, stream,
                static_cast<const double*>(partial), blocks, sum);
}

int clip_scale(const ClipScale& call, CUstream_st* stream) {
  return launch(clip_kernel, dim3(1), 1, 0, stream, call);
}

int split_weights(const float* weights, std::uint16_t* high, std::uint16_t* low, std::int64_t count,
                  CUstream_st* stream) {
  if (count < 0 || count > std::int64_t{1} << 38) return cudaErrorInvalidValue;
  return launch(split_kernel, split_blocks(count), kSplitThreads, 0, stream, weights, high, low,
                count);
}

int join_weights(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                 std::int64_t count, CUstream_st* stream) {
  if (count < 0 || count > std::int64_t{1} << 38) return cudaErrorInvalidValue;
  return launch(join_kernel, split_blocks(count), kSplitThreads, 0, stream, high, low, weights,
                count);
}

}  // namespace vfm::kernels

// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "common/reduce.cuh"
#include "frame_norm.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kPieces = kFrameNormChunks;

// Packs of a pixel's channels: 16 bytes, or what is left of the pixel.
template <class T>
__device__ __forceinline__ unsigned packs_of(const FrameNorm& c) {
  return (static_cast<unsigned>(c.channels) + kPack<T> - 1) / kPack<T>;
}
struct Range {
  unsigned begin, end;
};
__device__ __forceinline__ Range piece_of(unsigned n, unsigned piece) {
  return {static_cast<unsigned>(std::uint64_t{n} * piece / kPieces),
          static_cast<unsigned>(std::uint64_t{n} * (piece + 1) / kPieces)};
}

// What a pack is of: its first channel, its elements, where it is.
struct Place {
  int channel, count;
  std::int64_t at;
};
template <class T>
__device__ __forceinline__ Place place_of(const FrameNorm& c, unsigned frame, unsigned pixel,
                                          unsigned pack) {
  const int channel = static_cast<int>(pack) * kPack<T>;
  return {channel, min(static_cast<int>(c.channels) - channel, kPack<T>),
          (frame * c.pixels + pixel) * c.channels + channel};
}

// Mean and sum of squared deviations of a piece go to scratch, as doubles; its number of elements
// is known.
template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) moments_kernel(const FrameNorm c) {
  __shared__ float shared[kThreads / 32];
  __shared__ double totals[kThreads / 32];
  const unsigned frame = blockIdx.y;
  const Range range = piece_of(static_cast<unsigned>(c.pixels), blockIdx.x);
  double* const to = reinterpret_cast<double*>(c.scratch) + 2 * (frame * kPieces + blockIdx.x);
  if (range.begin == range.end) {  // of a small frame
    if (threadIdx.x == 0) to[0] = to[1] = 0;
    return;
  }
  const std::int64_t n = c.pixels * c.channels;
  const T* const x = static_cast<const T*>(c.x) + frame * n;
  const int seen = n < kThreads ? static_cast<int>(n) : kThreads;
  const bool mine = static_cast<int>(threadIdx.x) < seen;
  const float shift = block_sum<kThreads>(mine ? static_cast<float>(x[threadIdx.x]) : 0.f, shared) /
                      static_cast<float>(seen);
  const unsigned packs = packs_of<T>(c);
  double sum = 0, squares = 0;
  const unsigned first = range.begin * packs, end = range.end * packs;
  for (unsigned i = first + threadIdx.x; i < end; i += kThreads) {
    const Place p = place_of<T>(c, 0, i / packs, i % packs);
    float v[kPack<T>], s = 0, q = 0;
    unpack(load_pack<T, kVector>(x + p.at, p.count), v);
#pragma unroll
    for (int k = 0; k < kPack<T>; ++k) {
      const float d = k < p.count ? v[k] - shift : 0.f;
      s += d;
      q += d * d;
    }
    sum += s;
    squares += q;
  }
  sum = block_sum<kThreads>(sum, totals);
  squares = block_sum<kThreads>(squares, totals);
  if (threadIdx.x != 0) return;
  const double count = static_cast<double>(range.end - range.begin) * c.channels;
  to[0] = shift + sum / count;
  to[1] = squares - sum * sum / count;
}

// A warp joins the pieces of a frame.
__global__ void __launch_bounds__(32) join_kernel(const FrameNorm c) {
  __shared__ double shared[1];
  const unsigned frame = blockIdx.x;
  const double* const from = reinterpret_cast<const double*>(c.scratch) + 2 * frame * kPieces;
  const double all = static_cast<double>(c.pixels) * c.channels;
  const auto count = [&](unsigned piece) {
    const Range range = piece_of(static_cast<unsigned>(c.pixels), piece);
    return static_cast<double>(range.end - range.begin) * c.channels;
  };
  double sum = 0;
  for (unsigned i = threadIdx.x; i < kPieces; i += 32)
    sum += count(i) * from[2 * i];
  const double mean = block_sum<32>(sum, shared) / all;
  double squares = 0;
  for (unsigned i = threadIdx.x; i < kPieces; i += 32) {
    const double off = from[2 * i] - mean;
    squares += from[2 * i + 1] + count(i) * off * off;
  }
  squares = block_sum<32>(squares, shared);
  if (threadIdx.x != 0) return;
  c.moments[2 * frame] = static_cast<float>(mean);
  c.moments[2 * frame + 1] = static_cast<float>(squares / all);
}

__device__ __forceinline__ float rstd_of(const FrameNorm& c, unsigned frame) {
  return 1.f / sqrtf(c.moments[2 * frame + 1] + c.epsilon);
}

// To a few units in the last place, as the precise ones would take longer than the memory.
__device__ __forceinline__ float sigmoid(float z) {
  return __fdividef(1.f, 1.f + __expf(-z));
}

// Weight and bias of the pack's channels.
template <class T, bool kVector>
__device__ __forceinline__ void load_affine(const FrameNorm& c, const Place& p,
                                            float (&weight)[kPack<T>], float (&bias)[kPack<T>]) {
  load_floats<kVector>(c.weight + p.channel, p.count, weight);
  load_floats<kVector>(c.bias + p.channel, p.count, bias);
}

template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) forward_kernel(const FrameNorm c) {
  const unsigned packs = packs_of<T>(c), i = blockIdx.x * kThreads + threadIdx.x;
  if (i / packs >= c.pixels) return;
  const unsigned frame = blockIdx.y;
  const Place p = place_of<T>(c, frame, i / packs, i % packs);
  float v[kPack<T>], weight[kPack<T>], bias[kPack<T>];
  unpack(load_pack<T, kVector>(static_cast<const T*>(c.x) + p.at, p.count), v);
  load_affine<T, kVector>(c, p, weight, bias);
  const float mean = c.moments[2 * frame], rstd = rstd_of(c, frame);
#pragma unroll
  for (int k = 0; k < kPack<T>; ++k) {
    const float z = (v[k] - mean) * rstd * weight[k] + bias[k];
    v[k] = c.silu ? z * sigmoid(z) : z;
  }
  store_pack<T, kVector>(static_cast<T*>(c.y) + p.at, pack(v), p.count);
}

// Of a pack: n, the normed x, and the gradient of z = n w + b from that of y.
template <class T, bool kVector>
__device__ __forceinline__ void slopes(const FrameNorm& c, const Place& p, float mean, float rstd,
                                       const float (&weight)[kPack<T>],
                                       const float (&bias)[kPack<T>], float (&n)[kPack<T>],
                                       float (&dz)[kPack<T>]) {
  unpack(load_pack<T, kVector>(static_cast<const T*>(c.x) + p.at, p.count), n);
  unpack(load_pack<T, kVector>(static_cast<const T*>(c.dy) + p.at, p.count), dz);
#pragma unroll
  for (int k = 0; k < kPack<T>; ++k) {
    n[k] = (n[k] - mean) * rstd;
    if (!c.silu) continue;
    const float z = n[k] * weight[k] + bias[k], s = sigmoid(z);
    dz[k] *= s * (1.f + z * (1.f - s));
  }
}

// Sums of one piece of a frame, to scratch: dweight and dbias, then those of g and g n, g = dz w.
// Some pixels at a time, each by as many threads as it has packs.
template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) sums_kernel(const FrameNorm c) {
  __shared__ float room[2 * kPack<T>][kThreads];
  const unsigned frame = blockIdx.y, packs = packs_of<T>(c);
  const int channels = static_cast<int>(c.channels);
  float* const to = c.scratch + std::int64_t{frame * kPieces + blockIdx.x} * (2 * c.channels + 2);
  const float mean = c.moments[2 * frame], rstd = rstd_of(c, frame);
  const Range range = piece_of(static_cast<unsigned>(c.pixels), blockIdx.x);
  if (range.begin == range.end) {
    for (int i = static_cast<int>(threadIdx.x); i < 2 * channels + 2; i += kThreads)
      to[i] = 0;
    return;
  }
  float sum = 0, product = 0;
  for (unsigned first = 0; first < packs; first += kThreads) {
    const unsigned wide = min(packs - first, static_cast<unsigned>(kThreads));
    const unsigned lines = kThreads / wide, line = threadIdx.x / wide;
    const unsigned pack = first + threadIdx.x % wide;
    float dweight[kPack<T>] = {}, dbias[kPack<T>] = {}, weight[kPack<T>], bias[kPack<T>];
    load_affine<T, kVector>(c, place_of<T>(c, frame, 0, pack), weight, bias);
    for (unsigned pixel = range.begin + line; line < lines && pixel < range.end; pixel += lines) {
      float n[kPack<T>], dz[kPack<T>];
      slopes<T, kVector>(c, place_of<T>(c, frame, pixel, pack), mean, rstd, weight, bias, n, dz);
#pragma unroll
      for (int k = 0; k < kPack<T>; ++k)
        dweight[k] += dz[k] * n[k], dbias[k] += dz[k];
    }
#pragma unroll
    for (int k = 0; k < kPack<T>; ++k)
      room[k][threadIdx.x] = dweight[k], room[kPack<T> + k][threadIdx.x] = dbias[k];
    __syncthreads();
    for (unsigned i = threadIdx.x; i < wide * kPack<T>; i += kThreads) {
      const unsigned k = i / wide, column = i % wide;
      const int channel = static_cast<int>(first + column) * kPack<T> + static_cast<int>(k);
      if (channel >= channels) continue;
      float w = 0, b = 0;
      for (unsigned j = 0; j < lines; ++j) {
        w += room[k][j * wide + column];
        b += room[kPack<T> + k][j * wide + column];
      }
      to[channel] = w, to[channels + channel] = b;
      sum += c.weight[channel] * b;
      product += c.weight[channel] * w;
    }
    __syncthreads();
  }
  __shared__ float shared[kThreads / 32];
  sum = block_sum<kThreads>(sum, shared);
  product = block_sum<kThreads>(product, shared);
  if (threadIdx.x == 0) to[2 * channels] = sum, to[2 * channels + 1] = product;
}

// The sums of a frame take the place of those of its first piece.
__global__ void __launch_bounds__(kThreads) add_pieces_kernel(const FrameNorm c) {
  const std::int64_t width = 2 * c.channels + 2;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= width) return;
  float* const at = c.scratch + blockIdx.y * kPieces * width + i;
  double sum = 0;
#pragma unroll 8
  for (int piece = 0; piece < kPieces; ++piece)
    sum += at[piece * width];
  *at = static_cast<float>(sum);
}

__global__ void __launch_bounds__(kThreads) add_frames_kernel(const FrameNorm c) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= 2 * c.channels) return;
  double sum = 0;
#pragma unroll 8
  for (std::int64_t frame = 0; frame < c.frames; ++frame)
    sum += c.scratch[frame * kPieces * (2 * c.channels + 2) + i];
  (i < c.channels ? c.dweight[i] : c.dbias[i - c.channels]) += static_cast<float>(sum);
}

// dx = rstd (g - mean(g) - n mean(g n)).
template <class T, bool kVector>
__global__ void __launch_bounds__(kThreads) dx_kernel(const FrameNorm c) {
  const unsigned packs = packs_of<T>(c), i = blockIdx.x * kThreads + threadIdx.x;
  if (i / packs >= c.pixels) return;
  const unsigned frame = blockIdx.y;
  const Place p = place_of<T>(c, frame, i / packs, i % packs);
  const float* const sums =
      c.scratch + std::int64_t{frame} * kPieces * (2 * c.channels + 2) + 2 * c.channels;
  const float count = static_cast<float>(c.pixels * c.channels);
  const float mean_g = sums[0] / count, mean_gn = sums[1] / count;
  const float mean = c.moments[2 * frame], rstd = rstd_of(c, frame);
  float n[kPack<T>], dz[kPack<T>], weight[kPack<T>], bias[kPack<T>];
  load_affine<T, kVector>(c, p, weight, bias);
  slopes<T, kVector>(c, p, mean, rstd, weight, bias, n, dz);
#pragma unroll
  for (int k = 0; k < kPack<T>; ++k)
    dz[k] = rstd * (dz[k] * weight[k] - mean_g - n[k] * mean_gn);
  store_pack<T, kVector>(static_cast<T*>(c.dx) + p.at, pack(dz), p.count);
}

bool refused(const FrameNorm& c) {
  return c.frames < 0 || c.pixels < 0 || c.channels < 0 || c.frames > 65535 ||
         (c.channels > 0 && c.pixels > (0x7fffffff - kThreads) / c.channels) ||
         c.channels > 0x3fffffff;
}
bool empty(const FrameNorm& c) {
  return c.frames == 0 || c.pixels == 0 || c.channels == 0;
}

template <class T>
bool vector(const FrameNorm& c) {
  return c.channels % kPack<T> == 0 && aligned_to_16(c.x, c.y, c.dy, c.dx, c.weight, c.bias);
}

// A thread for each pack of each frame.
template <class T>
dim3 all_packs(const FrameNorm& c) {
  const std::int64_t packs = c.pixels * ((c.channels + kPack<T> - 1) / kPack<T>);
  return dim3(static_cast<unsigned>((packs + kThreads - 1) / kThreads),
              static_cast<unsigned>(c.frames));
}

template <class T>
int backward(const FrameNorm& c, cudaStream_t stream) {
  const auto frames = static_cast<unsigned>(c.frames);
  const auto columns = static_cast<unsigned>((2 * c.channels + 2 + kThreads - 1) / kThreads);
  int status = launch(vector<T>(c) ? sums_kernel<T, true> : sums_kernel<T, false>,
                      dim3(kPieces, frames), kThreads, 0, stream, c);
  if (status == cudaSuccess)
    status = launch(add_pieces_kernel, dim3(columns, frames), kThreads, 0, stream, c);
  if (status == cudaSuccess)
    status = launch(add_frames_kernel, dim3(columns), kThreads, 0, stream, c);
  if (status != cudaSuccess) return status;
  return launch(vector<T>(c) ? dx_kernel<T, true> : dx_kernel<T, false>, all_packs<T>(c), kThreads,
                0, stream, c);
}

}  // namespace

int frame_moments(const FrameNorm& call, CUstream_st* stream) {
  if (refused(call)) return cudaErrorInvalidValue;
  if (empty(call)) return cudaSuccess;
  const auto run = [&]<class T>(T) {
    return launch(vector<T>(call) ? moments_kernel<T, true> : moments_kernel<T, false>,
                  dim3(kPieces, static_cast<unsigned>(call.frames)), kThreads, 0, stream, call);
  };
  const int status = call.type == Type::bf16 ? run(Bf16{}) : run(float{});
  if (status != cudaSuccess) return status;
  return launch(join_kernel, dim3(static_cast<unsigned>(call.frames)), 32, 0, stream, call);
}

int frame_norm_forward(const FrameNorm& call, CUstream_st* stream) {
  if (refused(call)) return cudaErrorInvalidValue;
  if (empty(call)) return cudaSuccess;
  const auto run = [&]<class T>(T) {
    return launch(vector<T>(call) ? forward_kernel<T, true> : forward_kernel<T, false>,
                  all_packs<T>(call), kThreads, 0, stream, call);
  };
  return call.type == Type::bf16 ? run(Bf16{}) : run(float{});
}

int frame_norm_backward(const FrameNorm& call, CUstream_st* stream) {
  if (refused(call)) return cudaErrorInvalidValue;
  if (empty(call)) return cudaSuccess;
  return call.type == Type::bf16 ? backward<Bf16>(call, stream) : backward<float>(call, stream);
}

}  // namespace vfm::kernels

// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cmath>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "diffusion.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256, kMostChunks = 65535;

// The part of a sample that a block works on, in quads of four elements, of which the last of a
// sample may have fewer.
struct Part {
  std::int64_t begin;  // in the pack
  std::int64_t first;  // in the sample
  int count;           // none if the sample is shorter
  bool aligned;
};

// Elements of the quad at i that are of given frames, a bit each.
__device__ __forceinline__ unsigned given_bits(const DiffusionSample& s, std::int64_t i) {
  if (s.given == 0) return 0;
  const auto channel = static_cast<unsigned>(s.channel), given = static_cast<unsigned>(s.given);
  unsigned place = static_cast<unsigned>(i) % channel, bits = 0;
  for (int j = 0; j < 4; ++j) {
    bits |= (place < given ? 1u : 0u) << j;
    if (++place == channel) place = 0;
  }
  return bits;
}

__device__ __forceinline__ float4 chosen(unsigned bits, float4 a, float4 b) {
  return {bits & 1 ? a.x : b.x, bits & 2 ? a.y : b.y, bits & 4 ? a.z : b.z, bits & 8 ? a.w : b.w};
}

__device__ __forceinline__ Part part_of(const DiffusionSample& s) {
  const std::int64_t first = blockIdx.y * kDiffusionChunk, left = s.count - first;
  const std::int64_t count = left < kDiffusionChunk ? left : kDiffusionChunk;
  return {s.begin + first, first, static_cast<int>(count > 0 ? count : 0), s.begin % 4 == 0};
}

__device__ __forceinline__ float4 load_quad(const float* p, int count, bool aligned) {
  if (aligned && count >= 4) return load4(p);
  return {p[0], count > 1 ? p[1] : 0.f, count > 2 ? p[2] : 0.f, count > 3 ? p[3] : 0.f};
}

__device__ __forceinline__ void store_quad(float* p, int count, bool aligned, float4 v) {
  if (aligned && count >= 4) {
    store4(p, v);
    return;
  }
  p[0] = v.x;
  if (count > 1) p[1] = v.y;
  if (count > 2) p[2] = v.z;
  if (count > 3) p[3] = v.w;
}

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
__device__ __forceinline__ uint4 philox(uint4 c, uint2 key) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c.x, p1 = std::uint64_t{0xCD9E8D57} * c.z;
    c = {static_cast<unsigned>(p1 >> 32) ^ c.y ^ key.x, static_cast<unsigned>(p1),
         static_cast<unsigned>(p0 >> 32) ^ c.w ^ key.y, static_cast<unsigned>(p0)};
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return c;
}

__device__ __forceinline__ unsigned low_half(std::uint64_t v) {
  return static_cast<unsigned>(v);
}
__device__ __forceinline__ unsigned high_half(std::uint64_t v) {
  return static_cast<unsigned>(v >> 32);
}

// The middle of one of 2^32 cells of (0, 1).
__device__ __forceinline__ double to_unit(unsigned word) {
  return (word + 0.5) * (1.0 / 4294967296.0);
}

__device__ __forceinline__ float2 box_muller(unsigned a, unsigned b) {
  constexpr double kTwoPi = 2.0 * 3.141592653589793;
  const double radius = sqrt(-2.0 * log(to_unit(a)));
  double sine, cosine;
  sincos(kTwoPi * to_unit(b), &sine, &cosine);
  return {static_cast<float>(radius * cosine), static_cast<float>(radius * sine)};
}

__global__ void __launch_bounds__(kThreads) noise_kernel(const DiffusionPack pack, float* noise) {
  const DiffusionSample s = pack.samples[blockIdx.x];
  const Part part = part_of(s);
  for (int i = static_cast<int>(threadIdx.x) * 4; i < part.count; i += kThreads * 4) {
    const auto block = static_cast<std::uint64_t>(part.first + i) / 4;
    const uint4 words =
        philox({low_half(block), high_half(block), s.stream[0], s.stream[1]}, {s.key[0], s.key[1]});
    const float2 a = box_muller(words.x, words.y), b = box_muller(words.z, words.w);
    store_quad(noise + part.begin + i, part.count - i, part.aligned, {a.x, a.y, b.x, b.y});
  }
}

__device__ __forceinline__ float4 combined(float a, float4 v, float b, float4 w) {
  return {a * v.x + b * w.x, a * v.y + b * w.y, a * v.z + b * w.z, a * v.w + b * w.w};
}

__global__ void __launch_bounds__(kThreads)
    mix_kernel(const DiffusionPack pack, const float* x0, const float* noise, float* latents,
               float* target) {
  const DiffusionSample s = pack.samples[blockIdx.x];
  const Part part = part_of(s);
  for (int i = static_cast<int>(threadIdx.x) * 4; i < part.count; i += kThreads * 4) {
    const std::int64_t at = part.begin + i;
    const int count = part.count - i;
    const float4 x = load_quad(x0 + at, count, part.aligned);
    const float4 e = load_quad(noise + at, count, part.aligned);
    float4 mixed = combined(s.in, x, s.in_noise, e);
    if (const unsigned given = given_bits(s, part.first + i))
      mixed = chosen(given, combined(s.given_in, x, s.given_noise, e), mixed);
    store_quad(latents + s.latents + part.first + i, count, part.aligned && s.latents % 4 == 0,
               mixed);
    store_quad(target + at, count, part.aligned, combined(s.of_x0, x, -s.of_noise, e));
  }
  float* const mark = latents + s.latents + s.count;
  const std::int64_t next = part.first + kDiffusionChunk;
  const std::int64_t end = next < s.channel ? next : s.channel;
  for (std::int64_t i = part.first + threadIdx.x; i < end; i += kThreads)
    mark[i] = i < s.given ? 1.f : 0.f;
}

__device__ __forceinline__ double squares(double sum, float4 v) {
  sum += static_cast<double>(v.x) * v.x;
  sum += static_cast<double>(v.y) * v.y;
  sum += static_cast<double>(v.z) * v.z;
  return sum + static_cast<double>(v.w) * v.w;
}

__global__ void __launch_bounds__(kThreads) loss_kernel(const DiffusionLoss c, const float twice) {
  const DiffusionSample& s = c.pack.samples[blockIdx.x];
  const Part part = part_of(s);
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x) * 4; i < part.count; i += kThreads * 4) {
    const std::int64_t at = part.begin + i;
    const int count = part.count - i;
    const float4 f = load_quad(c.output + at, count, part.aligned);
    const float4 t = load_quad(c.target + at, count, part.aligned);
    float4 error = {f.x - t.x, f.y - t.y, f.z - t.z, f.w - t.w};
    if (const unsigned given = given_bits(s, part.first + i)) error = chosen(given, {}, error);
    sum = squares(sum, error);
    if (c.seed)
      store_quad(c.seed + at, count, part.aligned,
                 {twice * error.x, twice * error.y, twice * error.z, twice * error.w});
  }
  __shared__ double shared[kThreads / 32];
  sum = block_sum<kThreads>(sum, shared);
  if (threadIdx.x == 0) c.partial[std::int64_t{blockIdx.x} * gridDim.y + blockIdx.y] = sum;
}

// One block a sample.
__global__ void __launch_bounds__(kThreads)
    sums_kernel(const double* partial, const int chunks, double* sums) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < chunks; i += kThreads)
    sum += partial[std::int64_t{blockIdx.x} * chunks + i];
  __shared__ double shared[kThreads / 32];
  sum = block_sum<kThreads>(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

bool possible(const DiffusionPack& pack) {
  return pack.sample_count >= 0 && pack.sample_count <= 0x7fffffff && pack.longest >= 0 &&
         pack.longest <= kMostChunks * kDiffusionChunk;
}

dim3 grid_of(const DiffusionPack& pack) {
  return {static_cast<unsigned>(pack.sample_count),
          static_cast<unsigned>((pack.longest + kDiffusionChunk - 1) / kDiffusionChunk)};
}

}  // namespace

int diffusion_noise(const DiffusionPack& pack, float* noise, CUstream_st* stream) {
  if (!possible(pack)) return cudaErrorInvalidValue;
  return launch(noise_kernel, grid_of(pack), kThreads, 0, stream, pack, noise);
}

int diffusion_mix(const DiffusionPack& pack, const float* x0, const float* noise, float* latents,
                  float* target, CUstream_st* stream) {
  if (!possible(pack)) return cudaErrorInvalidValue;
  return launch(mix_kernel, grid_of(pack), kThreads, 0, stream, pack, x0, noise, latents, target);
}

int diffusion_loss(const DiffusionLoss& call, CUstream_st* stream) {
  if (!possible(call.pack)) return cudaErrorInvalidValue;
  const dim3 grid = grid_of(call.pack);
  const int status =
      launch(loss_kernel, grid, kThreads, 0, stream, call, static_cast<float>(2 * call.scale));
  if (status != cudaSuccess) return status;
  return launch(sums_kernel, dim3(grid.x), kThreads, 0, stream,
                static_cast<const double*>(call.partial), static_cast<int>(grid.y), call.sums);
}

}  // namespace vfm::kernels

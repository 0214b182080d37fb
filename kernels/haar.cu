// Eight elements a thread: both ends of the network together are under a percent of it.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>

#include "common/launch.cuh"
#include "haar.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;

// A place of the coarse video and a channel of the fine one.
struct Place {
  std::int64_t t, y, x, channel;
};
__device__ __forceinline__ Place place_of(const HaarLevel& l, std::int64_t i) {
  const std::int64_t channel = i % l.channels, x = i / l.channels;
  const std::int64_t y = x / (l.width / 2), t = y / (l.height / 2);
  return {t, y % (l.height / 2), x % (l.width / 2), channel};
}

// Where neighbour j of a place is stored.
__device__ __forceinline__ std::int64_t fine_at(const HaarLevel& l, const Place& p,
                                                std::int64_t frame, int j) {
  const std::int64_t stored = frame < l.repeated ? 0 : frame - l.repeated + 1;
  const std::int64_t line = stored * l.height + 2 * p.y + (j >> 1 & 1);
  return (line * l.width + 2 * p.x + (j & 1)) * l.channels + p.channel;
}
__device__ __forceinline__ std::int64_t coarse_at(const HaarLevel& l, std::int64_t i, int band) {
  return (i / l.channels * 8 + band) * l.channels + i % l.channels;
}

// To sums and differences in each of three directions.
__device__ __forceinline__ void butterfly(float (&v)[8]) {
#pragma unroll
  for (int apart = 1; apart < 8; apart *= 2)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i & apart) continue;
      const float sum = v[i] + v[i + apart], difference = v[i] - v[i + apart];
      v[i] = sum, v[i + apart] = difference;
    }
}

std::int64_t threads_of(const HaarLevel& l) {
  return l.frames / 2 * (l.height / 2) * (l.width / 2) * l.channels;
}

__global__ void __launch_bounds__(kThreads)
    split_kernel(const HaarLevel l, std::int64_t n, const float* fine, float* coarse) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  const Place p = place_of(l, i);
  float v[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const std::int64_t frame = 2 * p.t + (j >> 2);
    const bool absent = l.last_only && frame + 1 < l.repeated;
    v[j] = absent ? 0.f : l.scale * fine[fine_at(l, p, frame, j)];
  }
  butterfly(v);
#pragma unroll
  for (int j = 0; j < 8; ++j)
    coarse[coarse_at(l, i, j)] = v[j];
}

// The first place in time of the repeated frames adds them up, and the others have nothing to do.
__global__ void __launch_bounds__(kThreads)
    merge_kernel(const HaarLevel l, std::int64_t n, const float* coarse, float* fine) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  const Place p = place_of(l, i);
  const std::int64_t shared = l.repeated / 2;  // places in time that make the first frame
  if (p.t > 0 && p.t < shared) return;
  const std::int64_t times = p.t < shared ? shared : 1, step = n / (l.frames / 2);
  float sums[4] = {};  // of the first frame, by row and column
  for (std::int64_t time = 0; time < times; ++time) {
    float v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
      v[j] = l.scale * coarse[coarse_at(l, i + time * step, j)];
    butterfly(v);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::int64_t frame = 2 * (p.t + time) + (j >> 2);
      if (frame >= l.repeated || l.repeated == 1)
        fine[fine_at(l, p, frame, j)] = v[j];
      else if (!l.last_only || frame + 1 == l.repeated)
        sums[j & 3] = frame == 0 || l.last_only ? v[j] : sums[j & 3] + v[j];
    }
  }
  if (p.t >= shared) return;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    fine[fine_at(l, p, 0, j)] = sums[j];
}

bool refused(const HaarLevel& l) {
  constexpr std::int64_t kMost = std::int64_t{1} << 38;
  std::int64_t size = 1;
  for (const std::int64_t part : {l.frames, l.height, l.width, l.channels}) {
    if (part < 0 || (part > 0 && size > kMost / part)) return true;
    size *= part;
  }
  return l.frames % 2 != 0 || l.height % 2 != 0 || l.width % 2 != 0 || l.repeated < 1 ||
         (l.repeated > 1 && l.repeated % 2 != 0) ||
         l.repeated > std::max<std::int64_t>(l.frames, 1);
}

dim3 blocks_of(std::int64_t n) {
  return dim3(static_cast<unsigned>((n + kThreads - 1) / kThreads));
}

}  // namespace

int haar_split(const HaarLevel& level, const float* fine, float* coarse, CUstream_st* stream) {
  if (refused(level)) return cudaErrorInvalidValue;
  const std::int64_t n = threads_of(level);
  return launch(split_kernel, blocks_of(n), kThreads, 0, stream, level, n, fine, coarse);
}

int haar_merge(const HaarLevel& level, const float* coarse, float* fine, CUstream_st* stream) {
  if (refused(level)) return cudaErrorInvalidValue;
  const std::int64_t n = threads_of(level);
  return launch(merge_kernel, blocks_of(n), kThreads, 0, stream, level, n, coarse, fine);
}

}  // namespace vfm::kernels

// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "common/reduce.cuh"
#include "positions.h"

namespace vfm::kernels {
namespace {

constexpr float kEpsilon = 1e-6f;
constexpr int kThreads = 256, kStep = kThreads * 4;
constexpr int kTokens = 8;  // of a block in forward
// A block of the gradients: 16 threads for 64 columns of a token, 32 tokens at once.
constexpr int kColumns = 64, kLanes = kColumns / 4, kSlots = 32;
constexpr int kMostTiles = 65535;  // of a grid's second axis

struct Grid {
  int first, frames, height, width;
};

__device__ __forceinline__ Grid grid_of(const Positions& c, int sample) {
  const std::int32_t* g = c.grids + 4ll * sample;
  return {g[0], g[1], g[2], g[3]};
}

struct Place {
  int t, h, w;
};

__device__ __forceinline__ Place place_of(const Positions& c, int token) {
  // The last sample that begins at or before the token: where some are empty, the one with tokens.
  int sample = 0;
  for (int beyond = c.samples; beyond - sample > 1;) {
    const int middle = sample + (beyond - sample) / 2;
    (c.grids[4ll * middle] <= token ? sample : beyond) = middle;
  }
  const Grid g = grid_of(c, sample);
  const int line = (token - g.first) / g.width;
  return {line / g.height, line % g.height, token - g.first - line * g.width};
}

// How many of four elements from `at` are in a row.
__device__ __forceinline__ int in_row(const Positions& c, int at) {
  return min(max(c.width - at, 0), 4);
}

template <bool kVector>
__device__ __forceinline__ void add_row(const float* row, int count, float (&v)[4]) {
  float more[4];
  load_floats<kVector>(row, count, more);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v[i] += more[i];
}

__device__ __forceinline__ float squares(const float (&v)[4]) {
  return v[0] * v[0] + v[1] * v[1] + (v[2] * v[2] + v[3] * v[3]);
}

template <bool kVector>
__device__ __forceinline__ void store_scaled(float* p, int count, const float (&v)[4],
                                             float scale) {
  const float scaled[4] = {v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale};
  store_pack<float, kVector>(p, pack(scaled), count);
}

// A few tokens a block, one after the other: t + h stays in registers along a line of the grid, so
// that little but a row of w is read for each. kQuads groups of four elements are in a thread's
// registers; 0: the row is too wide for that, and is read again from the tables.
template <bool kVector, int kQuads>
__global__ void __launch_bounds__(kThreads) forward_kernel(const PositionsForward c) {
  __shared__ float shared[kThreads / 32];
  constexpr int Q = kQuads > 0 ? kQuads : 1;
  const int at0 = static_cast<int>(threadIdx.x) * 4;
  const int begin = static_cast<int>(blockIdx.x) * kTokens;
  const int end = static_cast<int>(min(std::int64_t{begin} + kTokens, c.tokens));
  float line[Q][4], kept[Q][4];
  Place before = {-1, -1, -1};
  for (int token = begin; token < end; ++token) {
    const Place place = place_of(c, token);
    const float* t = c.tables[0] + std::int64_t{place.t} * c.width;
    const float* h = c.tables[1] + std::int64_t{place.h} * c.width;
    const float* w = c.tables[2] + std::int64_t{place.w} * c.width;
    const auto from_tables = [&](int at, float(&v)[4]) {
      load_floats<kVector>(t + at, in_row(c, at), v);
      add_row<kVector>(h + at, in_row(c, at), v);
    };
    float sum = 0;
    if constexpr (kQuads > 0) {
      const bool new_line = place.t != before.t || place.h != before.h;
#pragma unroll
      for (int i = 0; i < Q; ++i) {
        const int at = at0 + i * kStep;
        if (new_line) from_tables(at, line[i]);
        load_floats<kVector>(w + at, in_row(c, at), kept[i]);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          kept[i][j] = line[i][j] + kept[i][j];
        sum += squares(kept[i]);
      }
      before = place;
    } else {
      for (int at = at0; at < c.width; at += kStep) {
        from_tables(at, kept[0]);
        add_row<kVector>(w + at, in_row(c, at), kept[0]);
        sum += squares(kept[0]);
      }
    }
    sum = block_sum<kThreads>(sum, shared);
    const float norm = c.unit ? kEpsilon + sqrtf(sum / static_cast<float>(c.width)) : 1.f;
    if (threadIdx.x == 0) c.norms[token] = norm;
    const float inverse = 1.f / norm;
    float* result = c.result + std::int64_t{token} * c.width;
    if constexpr (kQuads > 0) {
#pragma unroll
      for (int i = 0; i < Q; ++i) {
        const int at = at0 + i * kStep;
        store_scaled<kVector>(result + at, in_row(c, at), kept[i], inverse);
      }
    } else {
      for (int at = at0; at < c.width; at += kStep) {
        from_tables(at, kept[0]);
        add_row<kVector>(w + at, in_row(c, at), kept[0]);
        store_scaled<kVector>(result + at, in_row(c, at), kept[0], inverse);
      }
    }
  }
}

// What the gradients need of each token: mean(dy y) n / rms(e), and 1 / n.
template <bool kVector>
__global__ void __launch_bounds__(kThreads) along_kernel(const PositionsBackward c) {
  __shared__ float shared[kThreads / 32];
  const std::int64_t token = blockIdx.x;
  float product = 0;
  for (int at = static_cast<int>(threadIdx.x) * 4; at < c.width; at += kStep) {
    float y[4], dy[4];
    load_floats<kVector>(c.result + token * c.width + at, in_row(c, at), y);
    load_floats<kVector>(c.dy + token * c.width + at, in_row(c, at), dy);
    product += y[0] * dy[0] + y[1] * dy[1] + (y[2] * dy[2] + y[3] * dy[3]);
  }
  product = block_sum<kThreads>(product, shared);
  if (threadIdx.x != 0) return;
  const float norm = c.norms[token], rms = norm - kEpsilon;
  // e = 0 has no direction: its norm counts as a constant there.
  c.scratch[2 * token] =
      c.unit && rms > 0 ? product / static_cast<float>(c.width) * (norm / rms) : 0.f;
  c.scratch[2 * token + 1] = 1.f / norm;
}

// The tokens of a sample that took one row of a table: number k is
// first + k / run * stride + k % run, for k below count.
struct Tokens {
  int first;
  unsigned count, run, stride;
};

__device__ __forceinline__ Tokens tokens_of(const Grid& g, int axis, int row) {
  const unsigned frames = g.frames, height = g.height, width = g.width;
  if (axis == 0) return {g.first + row * g.height * g.width, height * width, height * width, 0};
  if (axis == 1) return {g.first + row * g.width, frames * width, width, height * width};
  return {g.first + row, frames * height, 1, width};
}

// One block a row of a table and 64 columns.
template <bool kVector>
__global__ void __launch_bounds__(kLanes* kSlots) gradient_kernel(const PositionsBackward c) {
  __shared__ float shared[kSlots][kColumns];
  int row = static_cast<int>(blockIdx.x);
  const int axis = row < c.rows[0] ? 0 : row - c.rows[0] < c.rows[1] ? 1 : 2;
  if (axis > 0) row -= c.rows[0];
  if (axis > 1) row -= c.rows[1];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int slot = static_cast<int>(threadIdx.x) / kLanes;
  const int tile = static_cast<int>(blockIdx.y) * kColumns;
  const int at = tile + lane * 4, count = in_row(c, at);
  float sum[4] = {0, 0, 0, 0};
  for (int sample = 0; sample < c.samples; ++sample) {
    const Grid g = grid_of(c, sample);
    if (row >= (axis == 0 ? g.frames : axis == 1 ? g.height : g.width)) continue;
    const Tokens tokens = tokens_of(g, axis, row);
#pragma unroll 4
    for (unsigned k = static_cast<unsigned>(slot); k < tokens.count; k += kSlots) {
      const std::int64_t token =
          tokens.first + std::int64_t{k / tokens.run} * tokens.stride + k % tokens.run;
      float y[4], dy[4];
      load_floats<kVector>(c.result + token * c.width + at, count, y);
      load_floats<kVector>(c.dy + token * c.width + at, count, dy);
      const float along = c.scratch[2 * token], inverse = c.scratch[2 * token + 1];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum[i] += (dy[i] - y[i] * along) * inverse;
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    shared[slot][lane * 4 + i] = sum[i];
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x);
  if (column >= kColumns || tile + column >= c.width) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kSlots; ++i)
    total += shared[i][column];
  float* out = axis == 0 ? c.gradients[0] : axis == 1 ? c.gradients[1] : c.gradients[2];
  out[std::int64_t{row} * c.width + tile + column] = total;
}

bool valid(const Positions& c) {
  return c.tokens >= 0 && c.tokens <= 0x7fffffff && c.width >= 0 &&
         c.width <= kMostTiles * kColumns && c.samples >= 0 &&
         (c.tokens == 0 || (c.samples > 0 && c.grids));
}

bool vectors(const Positions& c, const void* a, const void* b, const void* d, const void* e) {
  return aligned_to_16(a, b, d, e) && c.width % 4 == 0;
}

template <bool kVector>
int forward(const PositionsForward& c, cudaStream_t stream) {
  const int quads = (c.width + kStep - 1) / kStep;
  const auto kernel = quads <= 1   ? forward_kernel<kVector, 1>
                      : quads <= 2 ? forward_kernel<kVector, 2>
                      : quads <= 4 ? forward_kernel<kVector, 4>
                      : quads <= 6 ? forward_kernel<kVector, 6>
                                   : forward_kernel<kVector, 0>;
  const dim3 blocks(static_cast<unsigned>((c.tokens + kTokens - 1) / kTokens));
  return launch(kernel, blocks, kThreads, 0, stream, c);
}

// A thread for a frequency of a row.
__global__ void sinusoid_kernel(const float* times, std::int64_t pairs, int half, float* result) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const std::int64_t row = i / half, at = i % half;
  const double angle = times[row] * exp(-log(10000.0) * static_cast<double>(at) / half);
  float* const out = result + 2 * row * half + at;
  out[0] = static_cast<float>(cos(angle));
  out[half] = static_cast<float>(sin(angle));
}

}  // namespace

int sinusoid(const float* times, std::int64_t rows, int width, float* result, CUstream_st* stream) {
  if (rows < 0 || width < 0 || width % 2 != 0 || rows * width > std::int64_t{1} << 38)
    return cudaErrorInvalidValue;
  const std::int64_t pairs = rows * (width / 2);
  return launch(sinusoid_kernel, dim3(static_cast<unsigned>((pairs + kThreads - 1) / kThreads)),
                kThreads, 0, stream, times, pairs, width / 2, result);
}

int positions_forward(const PositionsForward& call, CUstream_st* stream) {
  if (!valid(call)) return cudaErrorInvalidValue;
  if (call.width == 0) return cudaSuccess;
  return vectors(call, call.tables[0], call.tables[1], call.tables[2], call.result)
             ? forward<true>(call, stream)
             : forward<false>(call, stream);
}

int positions_backward(const PositionsBackward& call, CUstream_st* stream) {
  if (!valid(call)) return cudaErrorInvalidValue;
  PositionsBackward c = call;
  if (c.tokens == 0) c.samples = 0;
  std::int64_t rows = 0;
  for (int i = 0; i < 3; ++i) {
    if (c.rows[i] < 0) return cudaErrorInvalidValue;
    if (c.gradients[i] == nullptr) c.rows[i] = 0;
    rows += c.rows[i];
  }
  if (rows > 0x7fffffff) return cudaErrorInvalidValue;
  if (rows == 0 || c.width == 0) return cudaSuccess;
  const bool vector = vectors(c, c.result, c.dy, nullptr, nullptr);
  const int status = launch(vector ? along_kernel<true> : along_kernel<false>,
                            dim3(static_cast<unsigned>(c.tokens)), kThreads, 0, stream, c);
  if (status != cudaSuccess) return status;
  const dim3 owners(static_cast<unsigned>(rows),
                    static_cast<unsigned>((c.width + kColumns - 1) / kColumns));
  return launch(vector ? gradient_kernel<true> : gradient_kernel<false>, owners, kLanes * kSlots, 0,
                stream, c);
}

}  // namespace vfm::kernels

// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cmath>

#include "attention_merge.h"
#include "common/attention.cuh"
#include "common/launch.cuh"
#include "common/vector.cuh"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// A warp for a query and head.
template <bool kQuads>
__global__ void __launch_bounds__(kThreads) merge_kernel(const AttentionMerge c) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned place = blockIdx.x * kWarps + threadIdx.x / 32;
  const unsigned heads = static_cast<unsigned>(c.heads);
  const std::int64_t row = c.first + place / heads, head = place % heads;
  if (row >= c.end) return;
  const std::int64_t at = (row * c.heads + head) * c.head_dim, sum = head * c.queries + row;
  float* const to = c.out_sum + at;
  const float* const from = c.out + at;
  float keep = 0, take = 1, both = -INFINITY;
  if (c.out != nullptr) {
    both = c.log_sum_exp[sum];
    if (!c.begins) {
      const float before = c.log_sum_exp_sum[sum], here = both;
      const float top = before > here ? before : here;  // `here` is finite, or NaN
      both = top + logf(expf(before - top) + expf(here - top));
      keep = expf(before - both), take = expf(here - both);
    }
  }
  for (int d = 4 * lane; d < c.head_dim; d += 128) {
    const int left = c.head_dim - d;
    const float4 add = c.out == nullptr ? float4{} : load_part<kQuads>(from + d, left);
    const float4 old = c.begins ? float4{} : load_part<kQuads>(to + d, left);
    store_part<kQuads>(to + d,
                       {keep * old.x + take * add.x, keep * old.y + take * add.y,
                        keep * old.z + take * add.z, keep * old.w + take * add.w},
                       left);
  }
  __syncwarp();  // all lanes have read what the first one writes
  if (lane == 0) c.log_sum_exp_sum[sum] = both;
}

constexpr int kTile = 32;

// A block for a tile of 32 x 32 elements.
__global__ void __launch_bounds__(kThreads)
    turn_kernel(const float* from, float* to, const std::int64_t rows, const std::int64_t columns) {
  __shared__ float tile[kTile][kTile + 1];
  const unsigned across = static_cast<unsigned>((columns + kTile - 1) / kTile);
  const std::int64_t row = std::int64_t{blockIdx.x / across} * kTile,
                     column = std::int64_t{blockIdx.x % across} * kTile;
  const int x = static_cast<int>(threadIdx.x % kTile);
  const int first = static_cast<int>(threadIdx.x / kTile);
#pragma unroll
  for (int y = first; y < kTile; y += kThreads / kTile)
    if (row + y < rows && column + x < columns) tile[y][x] = from[(row + y) * columns + column + x];
  __syncthreads();
#pragma unroll
  for (int y = first; y < kTile; y += kThreads / kTile)
    if (column + y < columns && row + x < rows) to[(column + y) * rows + row + x] = tile[x][y];
}

}  // namespace

int attention_merge(const AttentionMerge& c, CUstream_st* stream) {
  if (c.heads < 0 || c.head_dim < 0 || c.first < 0 || c.end < c.first || c.end > c.queries ||
      (c.end - c.first) * c.heads > 0x7fffffff)
    return cudaErrorInvalidValue;
  const std::int64_t places = (c.end - c.first) * c.heads;
  const bool quads = c.head_dim % 4 == 0 && aligned_to_16(c.out, c.out_sum);
  const dim3 blocks(static_cast<unsigned>((places + kWarps - 1) / kWarps));
  return launch(quads ? merge_kernel<true> : merge_kernel<false>, blocks, kThreads, 0, stream, c);
}

int attention_turn(const float* from, float* to, std::int64_t rows, std::int64_t columns,
                   CUstream_st* stream) {
  if (rows < 0 || columns < 0) return cudaErrorInvalidValue;
  const std::int64_t tiles = ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  if (tiles > 0x7fffffff) return cudaErrorInvalidValue;
  return launch(turn_kernel, dim3(static_cast<unsigned>(tiles)), kThreads, 0, stream, from, to,
                rows, columns);
}

}  // namespace vfm::kernels

// Convolutions on tensor cores. A block has 8 warps, and a tile of the product: 128 rows, 128 or 64
// columns. While one step of the sum is multiplied, the next two arrive: at most 96 KiB of shared
// memory, so that a Hopper multiprocessor has room for a second block, which computes where one
// waits.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/conv_gather.cuh"
#include "common/launch.cuh"
#include "common/pack.cuh"
#include "common/shared.cuh"
#include "common/tile.cuh"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256, kStages = 3;
constexpr int kStep = 64;   // of what is summed over
constexpr int kRows = 128;  // of a tile
constexpr int kN = 4;       // pieces of 8 columns of a warp

// Warps are kRows / (16 kM) rows of as many as there are.
template <int kM>
struct Layout {
  static constexpr int kWarpRows = kRows / (16 * kM), kWarpColumns = 8 / kWarpRows;
  static constexpr int kColumns = 8 * kN * kWarpColumns;
  static constexpr int kLeftBytes = kRows * kRowBytes<kStep>;
  static constexpr int kStageBytes = kLeftBytes + kColumns * kRowBytes<kStep>;
  static constexpr int kShared = kStages * kStageBytes;
  // Floats of a row of the tile on its way out: the four rows that half a warp writes at once lie
  // in different banks.
  static constexpr int kPitch = kColumns + 8;
  static_assert(kRows * kPitch * 4 <= kShared);
};

// Copies a tile's rows of 16 kGroups bytes: this thread's are `row`, row + kApart, ...
template <int kGroups>
struct Share {
  static constexpr int kApart = kThreads / kGroups;
  int row = static_cast<int>(threadIdx.x) / kGroups;
  int group = static_cast<int>(threadIdx.x) % kGroups;
  // Of row `row` + i kApart, from the tile's beginning: kApart is a multiple of 8.
  __device__ __forceinline__ SharedAddress place(int i) const {
    return static_cast<unsigned>((row + i * kApart) * 16 * kGroups + ((group ^ row % 8) << 4));
  }
};

// Adds bias and residual to a tile of sums in shared memory, and writes it, 16 bytes at a time.
template <int kM>
__device__ __forceinline__ void finish(const ConvProduct& c, const float* tile, std::int64_t row,
                                       std::int64_t rows, int column) {
  using L = Layout<kM>;
  constexpr int kGroups = L::kColumns / 8;
  const auto* residual = static_cast<const Bf16*>(c.residual);
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kGroups; i += kThreads) {
    const int group = i % kGroups, at = column + 8 * group;
    const std::int64_t r = row + i / kGroups;
    if (r >= rows || at >= c.columns) continue;
    const std::int64_t place = r * c.columns + at;
    float v[8], add[8];
    load_floats<true>(tile + i / kGroups * L::kPitch + 8 * group, 8, v);
    if (c.bias) {
      load_floats<true>(c.bias + at, 8, add);
#pragma unroll
      for (int k = 0; k < 8; ++k)
        v[k] += add[k];
    }
    if (residual) {
      unpack(load_pack<Bf16, true>(residual + place, 8), add);
#pragma unroll
      for (int k = 0; k < 8; ++k)
        v[k] += add[k];
    }
    store_pack<Bf16, true>(static_cast<Bf16*>(c.y) + place, pack(v), 8);
  }
}

template <int kM, bool kFrames, bool kDivides>
__global__ void __launch_bounds__(kThreads, 2) product_kernel(const ConvProduct c) {
  using L = Layout<kM>;
  constexpr int kLeft = kRows / Share<8>::kApart, kRight = L::kColumns / Share<8>::kApart;
  const SharedAddress stages = shared_address(shared_memory());
  const std::int64_t rows = c.gather.rows();
  // Tiles of the same rows are neighbours in time, so that what they gather comes from the cache.
  const unsigned across = (static_cast<unsigned>(c.columns) + L::kColumns - 1) / L::kColumns;
  const std::int64_t first_row = std::int64_t{blockIdx.x / across} * kRows;
  const int first_column = static_cast<int>(blockIdx.x % across) * L::kColumns;
  const int depth = c.gather.depth(), steps = (depth + kStep - 1) / kStep;
  const auto* source = static_cast<const Bf16*>(c.source);
  const auto* weights = static_cast<const Bf16*>(c.weights);
  const Share<8> share;
  ConvPixel pixels[kLeft];
#pragma unroll
  for (int i = 0; i < kLeft; ++i)
    pixels[i] = conv_pixel<kFrames>(c.gather, first_row + share.row + i * Share<8>::kApart, rows);

  int k = 8 * share.group;
  ConvTap tap = conv_tap<kFrames>(c.gather, k);
  const auto copy_next = [&](int step) {
    const bool inside = k < depth;
    const SharedAddress to = stages + step % kStages * L::kStageBytes;
#pragma unroll
    for (int i = 0; i < kLeft; ++i) {
      const std::int64_t at =
          inside ? conv_element<kFrames, kDivides>(c.gather, pixels[i], tap) : -1;
      copy_async_16(to + share.place(i), source + (at < 0 ? 0 : at), at >= 0);
    }
#pragma unroll
    for (int i = 0; i < kRight; ++i) {
      const int column = first_column + share.row + i * Share<8>::kApart;
      const bool valid = inside && column < c.columns;
      copy_async_16(to + L::kLeftBytes + share.place(i),
                    weights + (valid ? std::int64_t{column} * depth + k : 0), valid);
    }
    k += kStep;
    advance<kFrames>(c.gather, tap, kStep);
  };
  const int warp = warp_index();
  const int warp_row = warp / L::kWarpColumns * 16 * kM;
  const int warp_column = warp % L::kWarpColumns * 8 * kN;
  const SharedAddress left = warp_row * kRowBytes<kStep> + lane_place_a<kStep>();
  const SharedAddress right =
      L::kLeftBytes + warp_column * kRowBytes<kStep> + lane_place_b<kStep>();
  float sums[kM][kN][4];
  clear(sums);
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) copy_next(step);
    copy_async_commit();
  }
  for (int step = 0; step < steps; ++step) {
    copy_async_wait<kStages - 2>();
    __syncthreads();  // the step is here, and nobody reads the one before any more
    if (step + kStages - 1 < steps) copy_next(step + kStages - 1);
    copy_async_commit();
    const SharedAddress from = stages + step % kStages * L::kStageBytes;
    add_rows_by_rows<kStep>(sums, from + left, from + right);
  }
  copy_async_wait<0>();
  __syncthreads();
  float* const tile = reinterpret_cast<float*>(shared_memory());
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = warp_row + 16 * m + 8 * half + lane / 4;
        float* to = tile + row * L::kPitch + warp_column + 8 * n + lane % 4 * 2;
        *reinterpret_cast<float2*>(to) = {sums[m][n][2 * half], sums[m][n][2 * half + 1]};
      }
  __syncthreads();
  finish<kM>(c, tile, first_row, rows, first_column);
}

template <int kM>
int launch_product(const ConvProduct& c, cudaStream_t stream) {
  const std::int64_t down = (c.gather.rows() + kRows - 1) / kRows;
  const std::int64_t across = (c.columns + Layout<kM>::kColumns - 1) / Layout<kM>::kColumns;
  if (down * across > 0x7fffffff) return cudaErrorInvalidValue;
  const dim3 blocks(static_cast<unsigned>(down * across));
  constexpr int kShared = Layout<kM>::kShared;
  const auto run = [&]<bool kFrames, bool kDivides>() {
    return launch_shared<product_kernel<kM, kFrames, kDivides>, kShared>(blocks, kThreads, stream,
                                                                         c);
  };
  if (conv_frames(c.gather))
    return conv_divides(c.gather) ? run.template operator()<true, true>()
                                  : run.template operator()<true, false>();
  return conv_divides(c.gather) ? run.template operator()<false, true>()
                                : run.template operator()<false, false>();
}

// A tile of the gradient of the weights: 128 output channels by 128 of (tap, channel). Both sides
// lie with what is summed over, pixels, as their rows.
constexpr int kTile = 128, kTileBytes = kStep * kRowBytes<kTile>;
constexpr int kWeightsM = 4;

__device__ __forceinline__ void multiply_columns(float (&c)[kWeightsM][kN][4], SharedAddress left,
                                                 SharedAddress right) {
#pragma unroll
  for (int k = 0; k < kStep / 16; ++k) {
    const unsigned down = k * 16 * kRowBytes<kTile>;
    unsigned a[kWeightsM][4];
#pragma unroll
    for (int m = 0; m < kWeightsM; ++m)
      load_transposed(a[m], (left ^ 32u * m) + down);
#pragma unroll
    for (int n = 0; n < kN / 2; ++n) {
      unsigned b[4];
      load_transposed(b, (right ^ 32u * n) + down);
#pragma unroll
      for (int m = 0; m < kWeightsM; ++m) {
        multiply_add(c[m][2 * n], a[m], b[0], b[1]);
        multiply_add(c[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// A walk over the pixels of the result, kStep further each time.
template <bool kFrames>
struct Walk {
  int image, y, x, t = 0;

  __device__ __forceinline__ Walk(const ConvGather& g, std::int64_t r) {
    const std::int64_t line = r / g.out_width, plane = line / g.out_height;
    y = static_cast<int>(line - plane * g.out_height);
    x = static_cast<int>(r - line * g.out_width);
    image = static_cast<int>(kFrames ? plane / g.out_frames : plane);
    if constexpr (kFrames) t = static_cast<int>(plane - std::int64_t{image} * g.out_frames);
  }
  __device__ __forceinline__ void advance(const ConvGather& g) {
    for (x += kStep; x >= g.out_width; x -= g.out_width)
      if (++y == g.out_height) {
        y = 0;
        if (!kFrames || ++t == g.out_frames) t = 0, ++image;
      }
  }
};

template <bool kFrames>
__global__ void __launch_bounds__(kThreads, 2) weights_kernel(const ConvWeights c) {
  using Part = Share<16>;
  constexpr int kCopies = kStep / Part::kApart;
  const SharedAddress stages = shared_address(shared_memory());
  const int depth = c.gather.depth();
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int first_depth = static_cast<int>(blockIdx.y) * kTile;
  const std::int64_t begin = (c.first_chunk + blockIdx.z) * kConvChunk;
  const std::int64_t end = min(begin + kConvChunk, c.gather.rows());
  const int steps = static_cast<int>((end - begin + kStep - 1) / kStep);
  const auto* source = static_cast<const Bf16*>(c.source);
  const auto* dy = static_cast<const Bf16*>(c.dy);
  const Part share;
  const int column = first_column + 8 * share.group, k = first_depth + 8 * share.group;
  const ConvTap tap = conv_tap<kFrames>(c.gather, min(k, depth - 1));
  using Pixels = Walk<kFrames>;
  Pixels walks[kCopies] = {Pixels(c.gather, begin + share.row),
                           Pixels(c.gather, begin + share.row + Part::kApart),
                           Pixels(c.gather, begin + share.row + 2 * Part::kApart),
                           Pixels(c.gather, begin + share.row + 3 * Part::kApart)};
  static_assert(kCopies == 4);
  const auto copy_next = [&](int step) {
    const SharedAddress to = stages + step % kStages * 2 * kTileBytes;
    const std::int64_t first = begin + share.row + step * kStep;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      Pixels& w = walks[i];
      const std::int64_t row = first + i * Part::kApart;
      const bool inside = row < end, ours = inside && column < c.columns;
      copy_async_16(to + share.place(i), dy + (ours ? row * c.columns + column : 0), ours);
      const std::int64_t at = inside && k < depth
                                  ? conv_element<kFrames, false>(
                                        c.gather, conv_pixel(c.gather, w.image, w.y, w.x, w.t), tap)
                                  : -1;
      copy_async_16(to + kTileBytes + share.place(i), source + (at < 0 ? 0 : at), at >= 0);
      w.advance(c.gather);
    }
  };
  const int warp = warp_index(), warp_row = warp / 4, warp_column = warp % 4;
  // Pieces of 16 columns: four of the left side, two of the right.
  const SharedAddress left = lane_place_b<kTile>() ^ static_cast<unsigned>(32 * 4 * warp_row);
  const SharedAddress right =
      kTileBytes + (lane_place_a<kTile>() ^ static_cast<unsigned>(32 * 2 * warp_column));
  float sums[kWeightsM][kN][4];
  clear(sums);
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) copy_next(step);
    copy_async_commit();
  }
  for (int step = 0; step < steps; ++step) {
    copy_async_wait<kStages - 2>();
    __syncthreads();  // the step is here, and nobody reads the one before any more
    if (step + kStages - 1 < steps) copy_next(step + kStages - 1);
    copy_async_commit();
    const SharedAddress from = stages + step % kStages * 2 * kTileBytes;
    multiply_columns(sums, from + left, from + right);
  }
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int m = 0; m < kWeightsM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_column + warp_row * 64 + 16 * m + 8 * half + lane / 4;
        const int at = first_depth + warp_column * 32 + 8 * n + lane % 4 * 2;
        if (row >= c.columns || at >= depth) continue;
        float* to = c.partial + (std::int64_t{blockIdx.z} * c.columns + row) * depth + at;
        *reinterpret_cast<float2*>(to) = {sums[m][n][2 * half], sums[m][n][2 * half + 1]};
      }
}

}  // namespace

bool conv_on_tensor_cores(const ConvGather& gather, Type type, int columns, const void* a,
                          const void* b, const void* c, const void* d) {
  return type == Type::bf16 && gather.channels % 8 == 0 && columns % 8 == 0 &&
         gather.step % 8 == 0 && aligned_to_16(a, b, c, d);
}

int conv_product_tensor(const ConvProduct& call, CUstream_st* stream) {
  // The narrow tile where it computes less that nobody wants: 64, 192, ... columns.
  const bool narrow = (call.columns + 63) / 64 % 2 == 1;
  return narrow ? launch_product<2>(call, stream) : launch_product<4>(call, stream);
}

int conv_weights_tensor(const ConvWeights& call, CUstream_st* stream) {
  const dim3 blocks(static_cast<unsigned>((call.columns + kTile - 1) / kTile),
                    static_cast<unsigned>((call.gather.depth() + kTile - 1) / kTile),
                    static_cast<unsigned>(call.chunks));
  constexpr int kShared = kStages * 2 * kTileBytes;
  return conv_frames(call.gather)
             ? launch_shared<weights_kernel<true>, kShared>(blocks, kThreads, stream, call)
             : launch_shared<weights_kernel<false>, kShared>(blocks, kThreads, stream, call);
}

}  // namespace vfm::kernels

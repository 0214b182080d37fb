// Bound by reading W: a lane has four elements of each of four outputs on their way at a time.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"
#include "few_rows.h"

namespace vfm::kernels {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kWarps = 4, kOutputs = 4, kRows = 8;
constexpr int kOfBlock = kWarps * kOutputs;
static_assert(kRows * kOutputs <= 32, "a lane has one sum");
constexpr std::int64_t kMostTiles = 65535;  // of a grid's second axis

__device__ __forceinline__ float4 load_codes(const std::int8_t* p) {
  const std::uint32_t word = *reinterpret_cast<const std::uint32_t*>(p);
  const auto at = [word](int i) {
    return static_cast<float>(static_cast<std::int8_t>(word >> (8 * i)));
  };
  return {at(0), at(1), at(2), at(3)};
}

// Four elements, or one and zeros, which change no sum.
template <bool kQuads, class T>
__device__ __forceinline__ float4 load_some(const T* p) {
  if constexpr (!kQuads)
    return {static_cast<float>(*p), 0, 0, 0};
  else if constexpr (sizeof(T) == 1)
    return load_codes(p);
  else
    return load4(p);
}

// Every sum is a chain of its own, so how many there are, N rows, changes no bit of one.
template <class T, bool kQuads, int N>
__device__ __forceinline__ void make_rows(const FewRows& c, std::int64_t first_row,
                                          std::int64_t first, int lane) {
  constexpr int kWidth = kQuads ? 4 : 1;
  const int columns = static_cast<int>(c.columns);
  const T* w[kOutputs];
  const float* x[N];
#pragma unroll
  for (int o = 0; o < kOutputs; ++o)  // beyond the last one: it again
    w[o] = static_cast<const T*>(c.w) + min(first + o, c.outputs - 1) * c.columns;
#pragma unroll
  for (int r = 0; r < N; ++r)
    x[r] = c.x + min(first_row + r, c.rows - 1) * c.columns;
  float sums[N][kOutputs] = {};
#pragma unroll 2
  for (int k = lane * kWidth; k < columns; k += 32 * kWidth) {
    float4 of_w[kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o)
      of_w[o] = load_some<kQuads>(w[o] + k);
#pragma unroll
    for (int r = 0; r < N; ++r) {
      const float4 of_x = load_some<kQuads>(x[r] + k);
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) {
        sums[r][o] = fmaf(of_w[o].x, of_x.x, sums[r][o]);
        if constexpr (kQuads) {
          sums[r][o] = fmaf(of_w[o].y, of_x.y, sums[r][o]);
          sums[r][o] = fmaf(of_w[o].z, of_x.z, sums[r][o]);
          sums[r][o] = fmaf(of_w[o].w, of_x.w, sums[r][o]);
        }
      }
    }
  }
  float mine = 0;  // of all sums, which every lane gets, one
#pragma unroll
  for (int r = 0; r < N; ++r)
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      const float sum = warp_sum(sums[r][o]);
      if (lane == r * kOutputs + o) mine = sum;
    }
  const std::int64_t row = first_row + lane / kOutputs, output = first + lane % kOutputs;
  if (lane >= N * kOutputs || row >= c.rows || output >= c.outputs) return;
  c.y[row * c.outputs + output] = fmaf(mine, c.scales != nullptr ? c.scales[output] : 1.f,
                                       c.bias != nullptr ? c.bias[output] : 0.f);
}

template <class T, bool kQuads, int N>
__global__ void __launch_bounds__(32 * kWarps) few_rows_kernel(const FewRows c) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t first = std::int64_t{blockIdx.x} * kOfBlock + warp * kOutputs;
  if (first >= c.outputs) return;
  make_rows<T, kQuads, N>(c, std::int64_t{blockIdx.y} * kRows, first,
                          static_cast<int>(threadIdx.x % 32));
}

template <class T>
int run(const FewRows& call, CUstream_st* stream) {
  const dim3 grid(static_cast<unsigned>((call.outputs + kOfBlock - 1) / kOfBlock),
                  static_cast<unsigned>((call.rows + kRows - 1) / kRows));
  const auto with = [&](auto kernel) { return launch(kernel, grid, 32 * kWarps, 0, stream, call); };
  if (call.columns % 4 != 0 || !aligned_to_16(call.x, call.w))
    return with(few_rows_kernel<T, false, kRows>);
  if (call.rows == 1) return with(few_rows_kernel<T, true, 1>);
  if (call.rows <= 4) return with(few_rows_kernel<T, true, 4>);
  return with(few_rows_kernel<T, true, kRows>);
}

}  // namespace

int few_rows(const FewRows& call, CUstream_st* stream) {
  if (call.rows < 0 || call.columns < 0 || call.outputs < 0 || call.columns > 0x7fffffff - 1024 ||
      call.outputs > 0x7fffffff || call.rows > kMostTiles * kRows)
    return cudaErrorInvalidValue;
  switch (call.type) {
    case FewRowsType::bf16:
      return run<Bf16>(call, stream);
    case FewRowsType::int8:
      return run<std::int8_t>(call, stream);
    default:
      return run<float>(call, stream);
  }
}

}  // namespace vfm::kernels
